//! Laying an image out as the sandbox's root. The root itself stays the sandbox's own tmpfs, so that its private
//! mounts, its own files in /etc and the project's mount points have a place: each directory of the image is attached
//! whole, unless something of the sandbox's own lies below it; then what is in it is attached one by one.

use std::{
    collections::HashSet,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::CWD,
    io::{self, Errno},
    mount::{OpenTreeFlags, open_tree},
};

use super::{
    mountinfo::MountEntry,
    mounts::move_to,
    overlay::Stage,
    place::{self, Ground},
    plan::Plan,
};

/// What an image can make the guest attach.
const MAX_MOUNTS: usize = 4096;

/// Never an image's: what is at these places is the kernel's, or private to the sandbox.
const HIDDEN: [&str; 7] = ["/.caisson", "/dev", "/home", "/proc", "/run", "/sys", "/tmp"];

/// Places that are not the image's.
pub struct OwnPlaces {
    taken: HashSet<String>,
    /// Directories that hold such a place, and so cannot be the image's as a whole.
    split: HashSet<String>,
}

/// What was attached, by mount point.
pub struct Laid {
    pub mounted: Vec<String>,
    /// Sockets in it cannot be connected to.
    pub guarded: bool,
}

pub fn own_places(plan: &Plan<'_>, before: &[MountEntry]) -> OwnPlaces {
    let taken = before.iter().map(|mount| mount.path.clone()).chain(HIDDEN.map(String::from)).collect();
    let born = before.iter().map(|mount| mount.path.as_str());
    let asked = plan.seal.mounts.iter().map(|mount| mount.path.as_str()).filter(|path| *path != "/");
    let mut split = HashSet::from(["/etc".to_owned()]);
    for path in born.chain(asked) {
        let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
        split.extend(ends.map(|end| path[..end].to_owned()));
    }
    OwnPlaces { taken, split }
}

pub fn lay_out(tree: &OwnedFd, stage: &mut Stage, ground: &Ground, own: &OwnPlaces) -> io::Result<Laid> {
    let (staged, guarded) = stage.image(tree)?;
    let mut layer = Layer { staged, ground, own, mounted: Vec::new() };
    layer.directory("")?;
    Ok(Laid { mounted: layer.mounted, guarded })
}

struct Layer<'a> {
    staged: String,
    ground: &'a Ground,
    own: &'a OwnPlaces,
    mounted: Vec<String>,
}

impl Layer<'_> {
    /// Attaches what is in one directory; an empty path is the root.
    fn directory(&mut self, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(format!("{}{path}", self.staged)).map_err(errno)? {
            let entry = entry.map_err(errno)?;
            let kind = entry.file_type().map_err(errno)?;
            // Nothing that a program looks for has another name.
            let Some(name) =
                entry.file_name().to_str().filter(|name| !name.contains(char::is_control)).map(String::from)
            else {
                continue;
            };
            let inner = format!("{path}/{name}");
            if self.own.taken.contains(&inner) {
                continue;
            }
            if kind.is_dir() && self.own.split.contains(&inner) {
                self.ground.directory(&inner)?;
                self.directory(&inner)?;
            } else if !is_there(&inner)? {
                self.attach(path, &name, &inner, kind)?;
            }
        }
        Ok(())
    }

    fn attach(&mut self, parent: &str, name: &str, path: &str, kind: fs::FileType) -> io::Result<()> {
        let source = format!("{}{path}", self.staged);
        if kind.is_symlink() {
            let target = fs::read_link(&source).map_err(errno)?;
            let target = target.as_os_str().as_bytes();
            let Ok(target) = std::str::from_utf8(target) else { return Ok(()) };
            return self.ground.link(&open_ground(self.ground, parent)?, name, target);
        }
        if !kind.is_dir() && !kind.is_file() {
            return Ok(());
        }
        if self.mounted.len() == MAX_MOUNTS {
            return Err(Errno::TOOBIG);
        }
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        let mount = open_tree(CWD, source.as_str(), flags)?;
        let place = if kind.is_dir() { self.ground.directory(path)? } else { self.ground.file(path)? };
        move_to(&mount, &place)?;
        self.mounted.push(path.to_owned());
        Ok(())
    }
}

fn open_ground(ground: &Ground, path: &str) -> io::Result<OwnedFd> {
    ground.directory(if path.is_empty() { "/" } else { path })
}

/// Is there anything already, be it a link?
fn is_there(path: &str) -> io::Result<bool> {
    match place::existing(path) {
        Ok(_) | Err(Errno::LOOP) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::link::{Mount, Seal};

    #[test]
    fn directories_above_what_is_the_sandboxs_own_are_split() {
        let born = |path: &str| MountEntry {
            device: 1,
            root: "/".into(),
            path: path.into(),
            kind: "tmpfs".into(),
            read_only: false,
            nosuid: true,
            nodev: true,
        };
        let seal = Seal {
            mounts: ["/", "/srv/team/project"].map(|path| Mount { path: path.into(), ..Mount::default() }).into(),
            ..Seal::default()
        };
        let plan = Plan { seal: &seal, attachments: Vec::new(), groups: Default::default() };
        let own = own_places(&plan, &[born("/"), born("/var/tmp"), born("/dev/shm")]);
        for split in ["/etc", "/srv", "/srv/team", "/var"] {
            assert!(own.split.contains(split), "{split}");
        }
        assert!(!own.split.contains("/srv/team/project") && !own.split.contains("/usr"));
        assert!(own.taken.contains("/var/tmp") && own.taken.contains("/proc"));
    }
}
