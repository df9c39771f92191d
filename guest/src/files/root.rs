//! Resolving paths beneath the sandbox's root, whatever the tree is turned into meanwhile.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::OnceLock,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat, openat2, statat},
    io::Errno,
};

use super::{
    failure::{At, failure},
    path::SandboxPath,
    stepwise,
};
use crate::proto::link::Failure;

/// How often a resolution that met a rename is tried again.
const ATTEMPTS: u32 = 256;

/// For looking at something without opening it.
pub const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// For reading: never waits for a FIFO's other side, never becomes a controlling terminal.
pub const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// For a directory's own descriptor.
pub const DIRECTORY: OFlags = READ.union(OFlags::DIRECTORY);

/// The directory that no path leads out of.
pub struct Root {
    directory: OwnedFd,
    /// Where the kernel (or what plays it, as gVisor does) has no openat2.
    is_stepwise: bool,
}

impl Root {
    pub fn open(path: &str) -> Result<Self, Errno> {
        let directory = openat(CWD, path, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { directory, is_stepwise: !has_openat2() })
    }

    /// Resolves without openat2, as on kernels that lack it.
    #[cfg(test)]
    pub fn stepwise(mut self) -> Self {
        self.is_stepwise = true;
        self
    }

    /// Opens a path. Links on the way, and at its end unless `flags` says NOFOLLOW, are followed inside the root;
    /// those of /proc that jump elsewhere are not.
    pub fn open_at(&self, path: &SandboxPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve(&path.relative(), flags)
    }

    fn resolve(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.is_stepwise {
            return stepwise::open_in_root(self.directory.as_fd(), relative.as_bytes(), flags);
        }
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        persistently(|| openat2(&self.directory, relative, flags, Mode::empty(), how))
    }

    /// Opens what lies below `directory` without following any link. `crossing` allows other mounts on the way.
    pub fn open_below(
        &self,
        directory: impl AsFd,
        relative: &[u8],
        flags: OFlags,
        crossing: bool,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW;
        if self.is_stepwise {
            return stepwise::open_below(directory.as_fd(), relative, flags, crossing);
        }
        let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        if !crossing {
            how |= ResolveFlags::NO_XDEV;
        }
        persistently(|| openat2(directory.as_fd(), relative, flags, Mode::empty(), how))
    }

    /// The directory that holds the path's last name, which is not looked at.
    pub fn place(&self, path: &SandboxPath) -> Result<Place, Failure> {
        let (parent, name) = path.split()?;
        let directory = self.open_at(&parent, LOOK | OFlags::DIRECTORY).at(&parent)?;
        Ok(Place { directory, name: name.as_bytes().to_vec() })
    }

    /// The same, and if the name is a link, the place it leads to in the end.
    pub fn place_behind_links(&self, path: &SandboxPath) -> Result<Place, Failure> {
        let mut path = path.clone();
        for _ in 0..stepwise::MAX_LINKS {
            let place = self.place(&path)?;
            let target = match rustix::fs::readlinkat(&place.directory, place.name.as_slice(), Vec::new()) {
                Ok(target) => target,
                Err(Errno::INVAL | Errno::NOENT) => return Ok(place),
                Err(error) => return Err(error).at(&path),
            };
            let Ok(target) = target.to_str() else {
                return Err(failure("INVALID_PATH", format!("{path}: a link to a name that is not UTF-8")));
            };
            // Climbing above the root stops at the root, as it does for the kernel.
            let (parent, _) = path.split()?;
            let text = if target.starts_with('/') { target.to_owned() } else { format!("{parent}/{target}") };
            path = SandboxPath::parse(&clamp(&text))?;
        }
        Err(Errno::LOOP).at(&path)
    }
}

/// Drops each leading `..` of an absolute path.
fn clamp(text: &str) -> String {
    let mut depth = 0_usize;
    let kept = text.split('/').filter(|segment| match *segment {
        "" | "." => false,
        ".." if depth == 0 => false,
        ".." => {
            depth -= 1;
            true
        }
        _ => {
            depth += 1;
            true
        }
    });
    format!("/{}", kept.collect::<Vec<_>>().join("/"))
}

/// A name in an open directory.
pub struct Place {
    pub directory: OwnedFd,
    pub name: Vec<u8>,
}

impl Place {
    /// What is there now, a link as itself; `None` for nothing.
    pub fn look(&self) -> Result<Option<Stat>, Errno> {
        match statat(&self.directory, self.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The kernel gives up a resolution with EAGAIN when a rename anywhere might have let it out.
fn persistently(mut open: impl FnMut() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    for _ in 0..ATTEMPTS {
        match open() {
            Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

fn has_openat2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| openat2(CWD, "/", LOOK, Mode::empty(), ResolveFlags::IN_ROOT).is_ok())
}

/// A descriptor for the same thing with other flags, by name; what it is must be checked again.
pub fn reopen(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
}
