//! Making directories and mount points: only on the sandbox's own tmpfs mounts, never through a link.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::{self, Errno},
};

use super::mountinfo::MountEntry;

/// What may be written while the world is being laid out: the tmpfs mounts that the sandbox was born with.
pub struct Ground {
    devices: Vec<u64>,
}

impl Ground {
    pub fn new(mounts: &[MountEntry]) -> Self {
        Ground { devices: mounts.iter().filter(|mount| mount.is_private()).map(|mount| mount.device).collect() }
    }

    /// In gVisor the root is an overlay whose writes stay in memory, and belongs to the sandbox like its tmpfs mounts.
    pub fn of_gvisor(mounts: &[MountEntry]) -> Self {
        let own = |mount: &&MountEntry| mount.is_private() || (mount.path == "/" && mount.kind == "overlay");
        Ground { devices: mounts.iter().filter(own).map(|mount| mount.device).collect() }
    }

    /// Opens the directory at an absolute path, making what is missing.
    pub fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        let path = path.trim_end_matches('/');
        match open(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {
                let (parent, name) = split(path)?;
                let parent = self.directory(parent)?;
                self.must_be_ours(&parent)?;
                rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(&parent, name, flags, Mode::empty())
            }
            other => other,
        }
    }

    /// Opens the file at an absolute path, making it, empty, and its directories if they are missing.
    pub fn file(&self, path: &str) -> io::Result<OwnedFd> {
        match existing(path) {
            Err(Errno::NOENT) => {
                let (parent, name) = split(path)?;
                self.write(&self.directory(parent)?, name, b"", 0o444)?;
                existing(path)
            }
            other => other,
        }
    }

    /// Writes a file in a directory of ours, in place of whatever is there.
    pub fn write(&self, directory: &OwnedFd, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        self.clear(directory, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))?;
        let mut rest = content;
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(())
    }

    pub fn link(&self, directory: &OwnedFd, name: &str, target: &str) -> io::Result<()> {
        self.clear(directory, name)?;
        rustix::fs::symlinkat(target, directory, name)
    }

    /// Sets the mode of a directory of ours, if there is one.
    pub fn set_mode(&self, path: &str, mode: u32) -> io::Result<()> {
        // A descriptor that is a mere path cannot be changed.
        let directory = match open(path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        match self.must_be_ours(&directory) {
            Ok(()) => rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode)),
            Err(_) => Ok(()),
        }
    }

    fn clear(&self, directory: &OwnedFd, name: &str) -> io::Result<()> {
        self.must_be_ours(directory)?;
        match rustix::fs::unlinkat(directory, name, rustix::fs::AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    fn must_be_ours(&self, directory: &OwnedFd) -> io::Result<()> {
        let device = rustix::fs::fstat(directory)?.st_dev;
        if self.devices.contains(&device) { Ok(()) } else { Err(Errno::ROFS) }
    }
}

/// Opens what is at an absolute path without following a link in any part of it.
pub fn existing(path: &str) -> io::Result<OwnedFd> {
    open(path, OFlags::PATH)
}

fn open(path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { "/" } else { path };
    match rustix::fs::openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS) => open_stepwise(path, flags),
        other => other,
    }
}

/// The same where there is no openat2, as in gVisor.
fn open_stepwise(path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open("/", look | OFlags::DIRECTORY, Mode::empty())?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        at = rustix::fs::openat(&at, part, look, Mode::empty())?;
        if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode).is_symlink() {
            return Err(Errno::LOOP);
        }
    }
    if flags == OFlags::PATH {
        return Ok(at);
    }
    // What it is was looked at just now, and nothing else runs in the sandbox yet.
    rustix::fs::open(path, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn split(path: &str) -> io::Result<(&str, &str)> {
    match path.rsplit_once('/') {
        Some((parent, name)) if !name.is_empty() => Ok((parent, name)),
        _ => Err(Errno::ISDIR),
    }
}
