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
    path.split(':').filter(|part| part.starts_with('/') && cannot_be(Path::new(part))).map(String::from).collect()
}

/// What was seen when a program was looked for ahead of its next use. For kernels whose read-only directories nobody changes
/// while they are shown: neither can anybody inside, nor need a change outside be seen at once.
pub struct PassedOver {
    pub name: String,
    /// Directories of the PATH before the one that has it.
    pub directories: HashSet<String>,
}

impl PassedOver {
    /// Nothing where the program is nowhere: it may be there the next time.
    pub fn look(name: &str, path: &str, never_there: &HashSet<String>) -> Option<Self> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let mut directories = HashSet::new();
        for part in path.split(':').filter(|part| part.starts_with('/') && !never_there.contains(*part)) {
            match fs::access(Path::new(part).join(name), Access::EXISTS) {
                Ok(()) => return Some(Self { name: name.into(), directories }),
                Err(Errno::NOENT) if fs::access(part, Access::WRITE_OK) == Err(Errno::ROFS) => {
                    directories.insert(part.into());
                }
                Err(_) => {}
            }
        }
        None
    }
}

fn cannot_be(directory: &Path) -> bool {
    let mut ancestors = directory.ancestors();
    match ancestors.next().map(fs::stat) {
        Some(Err(Errno::NOENT)) => {}
        _ => return false,
    }
    for ancestor in ancestors {
        match fs::stat(ancestor) {
            Err(Errno::NOENT) => {}
            Ok(found) => {
                return match fs::access(ancestor, Access::WRITE_OK) {
                    Err(Errno::ROFS) => true,
                    // Its owner could change its mode.
                    Err(Errno::ACCESS) => found.st_uid != getuid().as_raw(),
                    _ => false,
                };
            }
            // Covered, a link that leads nowhere, or not a directory: who knows.
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_what_nobody_can_make_is_left_out() {
        let folder = std::env::temp_dir().join(format!("caisson-search-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        symlink("nowhere", folder.join("link")).unwrap();
        let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let writable = [place("bin"), place("a/b/bin"), place(""), place("link"), place("link/bin"), "bin".into()];
        assert_eq!(never_there(&writable.join(":")), HashSet::new());
        // Files of /proc are the kernel's; directories cannot be made there by anybody.
        let closed = "/proc/self/fdinfo/none/bin";
        if !getuid().is_root() {
            assert_eq!(never_there(&format!("/usr/bin:{closed}:/bin")), HashSet::new(), "it is this process's own");
            assert_eq!(never_there("/usr/none/bin:/usr/bin"), HashSet::from(["/usr/none/bin".to_owned()]));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
