//! Making directories and mount points: only on the sandbox's own tmpfs mounts, never through a link.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, OFlags},
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

    /// Opens the directory at an absolute path, making what is missing.
    pub fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        let mut at = open(&root()?, "/", OFlags::DIRECTORY)?;
        for part in parts(path) {
            at = match open(&at, part, OFlags::DIRECTORY) {
                Err(Errno::NOENT) => {
                    self.must_be_ours(&at)?;
                    rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o755))?;
                    open(&at, part, OFlags::DIRECTORY)?
                }
                other => other?,
            };
        }
        Ok(at)
    }

    /// Opens the file at an absolute path, making it, empty, and its directories if they are missing.
    pub fn file(&self, path: &str) -> io::Result<OwnedFd> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        match open(&parent, name, OFlags::empty()) {
            Err(Errno::NOENT) => {
                self.write(&parent, name, b"", 0o444)?;
                open(&parent, name, OFlags::empty())
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
        let directory = match existing(path) {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        if self.must_be_ours(&directory).is_err() {
            return Ok(());
        }
        // A descriptor that is a mere path cannot be changed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&directory, ".", flags, Mode::empty())?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))
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
    let mut at = root()?;
    let mut rest = parts(path).peekable();
    while let Some(part) = rest.next() {
        at = open(&at, part, if rest.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() })?;
    }
    Ok(at)
}

fn root() -> io::Result<OwnedFd> {
    rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn open(at: &OwnedFd, part: &str, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    let opened = rustix::fs::openat(at, part, flags, Mode::empty())?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if kind.is_symlink() { Err(Errno::LOOP) } else { Ok(opened) }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

fn split(path: &str) -> io::Result<(&str, &str)> {
    match path.rsplit_once('/') {
        Some((parent, name)) if !name.is_empty() => Ok((parent, name)),
        _ => Err(Errno::ISDIR),
    }
}
