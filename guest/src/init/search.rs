//! Where programs are looked for. Each place that has none costs a call, and a call is dear where the kernel is a program
//! or a machine is emulated.

use std::{collections::HashSet, path::Path};

use rustix::{
    fs::{self, Access},
    io::Errno,
    process::getuid,
};

/// The directories of a PATH that are not there and never will be, because nobody inside can make them.
pub fn never_there(path: &str) -> HashSet<String> {
    directories(path, |directory| fs::stat(directory).err() == Some(Errno::NOENT) && cannot_be(directory))
}

/// The directories of a PATH in which nobody inside can change anything.
pub fn closed(path: &str) -> HashSet<String> {
    directories(path, is_closed)
}

fn directories(path: &str, are: impl Fn(&Path) -> bool) -> HashSet<String> {
    path.split(':').filter(|part| part.starts_with('/') && are(Path::new(part))).map(String::from).collect()
}

/// What was seen when a program was looked for ahead of its next use. For kernels whose closed directories nobody changes
/// while they are shown: neither can anybody inside, nor need a change outside be seen at once.
pub struct PassedOver {
    pub name: String,
    /// Directories of the PATH before the one that has it.
    pub directories: HashSet<String>,
}

impl PassedOver {
    /// Nothing where the program is nowhere: it may be there the next time.
    pub fn look(name: &str, path: &str, never_there: &HashSet<String>, closed: &HashSet<String>) -> Option<Self> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let mut directories = HashSet::new();
        for part in path.split(':').filter(|part| part.starts_with('/') && !never_there.contains(*part)) {
            match fs::access(Path::new(part).join(name), Access::EXISTS) {
                Ok(()) => return Some(Self { name: name.into(), directories }),
                Err(Errno::NOENT) if closed.contains(part) => {
                    directories.insert(part.into());
                }
                Err(_) => {}
            }
        }
        None
    }
}

fn cannot_be(directory: &Path) -> bool {
    for ancestor in directory.ancestors().skip(1) {
        match fs::stat(ancestor) {
            Err(Errno::NOENT) => {}
            Ok(_) => return is_closed(ancestor),
            // Covered, a link that leads nowhere, or not a directory: who knows.
            Err(_) => return false,
        }
    }
    false
}

/// Nobody inside can change what is in the directory, or put another in its place.
fn is_closed(directory: &Path) -> bool {
    let steps = directory.ancestors().zip(directory.ancestors().skip(1));
    nobody_writes(directory)
        && steps.into_iter().all(|(inner, outer)| nobody_writes(outer) || device(inner) != device(outer))
}

/// What is mounted somewhere cannot be moved away.
fn device(directory: &Path) -> Option<u64> {
    fs::stat(directory).ok().map(|found| found.st_dev)
}

fn nobody_writes(directory: &Path) -> bool {
    match fs::access(directory, Access::WRITE_OK) {
        Err(Errno::ROFS) => true,
        // Its owner could change its mode.
        Err(Errno::ACCESS) => fs::stat(directory).is_ok_and(|found| found.st_uid != getuid().as_raw()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rustix::thread::{Uid, set_thread_res_uid};

    use super::*;

    #[test]
    fn only_what_nobody_can_make_is_left_out() {
        let folder = std::env::temp_dir().join(format!("caisson-search-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        symlink("nowhere", folder.join("link")).unwrap();
        let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let writable = [place("bin"), place("a/b/bin"), place(""), place("link"), place("link/bin"), "bin".into()];
        assert_eq!(never_there(&writable.join(":")), HashSet::new());
        assert_eq!(closed(&writable.join(":")), HashSet::new());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_another_owner_s_is_closed() {
        std::thread::spawn(|| {
            if getuid().is_root() {
                // Of this thread alone.
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let set = |directory: &str| HashSet::from([directory.to_owned()]);
            // Files of /proc are the kernel's; directories cannot be made there by anybody.
            let path = "/usr/bin:/proc/self/fdinfo/none/bin:/bin";
            assert_eq!(never_there(path), HashSet::new(), "it is this process's own");
            assert_eq!(never_there("/usr/none/bin:/usr/bin"), set("/usr/none/bin"));
            assert_eq!(closed("/usr/none/bin:/usr/bin:/tmp"), set("/usr/bin"));
            let passed = |closed| PassedOver::look("sh", "/usr:/tmp:/usr/bin:/bin", &HashSet::new(), &closed).unwrap();
            assert_eq!(passed(closed("/usr:/tmp:/bin")).directories, set("/usr"));
        })
        .join()
        .unwrap();
    }
}
