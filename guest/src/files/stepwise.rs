//! Resolving one name at a time, for kernels without openat2. No step follows a link by itself: a link
//! is read and its text walked like the rest, so that `..` and absolute targets stay beneath the root.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, openat, readlinkat},
    io::Errno,
};

use super::read::is_proc;

/// As many links as the kernel follows.
pub const MAX_LINKS: u32 = 40;
/// How often a name that changes its kind under our hands is looked at again.
const MAX_CHANGES: u32 = 256;

/// What openat2 does with RESOLVE_IN_ROOT.
pub fn open_in_root(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut walk = Walk { root, above: Vec::new(), links: 0, changes: 0 };
    let mut names = segments(path);
    while let Some(name) = names.pop_front() {
        if name == b".." {
            walk.above.pop();
            continue;
        }
        let is_last = names.is_empty();
        let step = if is_last { flags } else { OFlags::PATH | OFlags::CLOEXEC };
        let follows = !is_last || !flags.contains(OFlags::NOFOLLOW);
        match walk.step(&name, step, follows)? {
            Step::Opened(file) if is_last => return Ok(file),
            Step::Opened(directory) => walk.above.push(directory),
            Step::Link(target) => {
                if target.first() == Some(&b'/') {
                    walk.above.clear();
                }
                for name in segments(&target).into_iter().rev() {
                    names.push_front(name);
                }
            }
        }
    }
    openat(walk.here(), ".", flags - OFlags::NOFOLLOW, Mode::empty())
}

/// What openat2 does with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS; without `crossing` also RESOLVE_NO_XDEV, as
/// far as device numbers tell.
pub fn open_below(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags, crossing: bool) -> Result<OwnedFd, Errno> {
    let mut names = segments(path);
    let device = fstat(directory)?.st_dev;
    let mut here: Option<OwnedFd> = None;
    while let Some(name) = names.pop_front() {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let step = if names.is_empty() { flags } else { OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY };
        let next = openat(here.as_ref().map_or(directory, AsFd::as_fd), name, step | OFlags::NOFOLLOW, Mode::empty())?;
        if !crossing && fstat(&next)?.st_dev != device {
            return Err(Errno::XDEV);
        }
        here = Some(next);
    }
    here.map_or_else(|| openat(directory, ".", flags - OFlags::NOFOLLOW, Mode::empty()), Ok)
}

fn segments(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").map(<[u8]>::to_vec).collect()
}

enum Step {
    Opened(OwnedFd),
    Link(Vec<u8>),
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories from the root down to where we are.
    above: Vec<OwnedFd>,
    links: u32,
    changes: u32,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.above.last().map_or(self.root, AsFd::as_fd)
    }

    fn step(&mut self, name: &[u8], flags: OFlags, follows: bool) -> Result<Step, Errno> {
        loop {
            let refused = match openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                // Only a descriptor that opens nothing can be one for a link.
                Ok(file) if !follows || !is_link(&file)? => return Ok(Step::Opened(file)),
                Ok(_) => Errno::LOOP,
                Err(error) => error,
            };
            if !follows || !matches!(refused, Errno::LOOP | Errno::NOTDIR) {
                return Err(refused);
            }
            match readlinkat(self.here(), name, Vec::new()) {
                Ok(_) if self.links == MAX_LINKS => return Err(Errno::LOOP),
                // Those of /proc that name a path stand for open files and the like, not for their text.
                Ok(target) if target.as_bytes().starts_with(b"/") && is_proc(self.here())? => return Err(Errno::LOOP),
                Ok(target) => {
                    self.links += 1;
                    return Ok(Step::Link(target.into_bytes()));
                }
                Err(Errno::INVAL) if refused == Errno::NOTDIR => return Err(Errno::NOTDIR),
                // It was a link a moment ago.
                Err(Errno::INVAL) if self.changes < MAX_CHANGES => self.changes += 1,
                Err(Errno::INVAL) => return Err(Errno::AGAIN),
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_link(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Symlink)
}
