//! Reading directories and walking trees: a piece of names at a time, one open descriptor per level,
//! never through a link.

use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, RawDir, Stat, fstat, statat},
    io::Errno,
};

use super::{
    read::is_proc,
    root::{DIRECTORY, reopen},
};

/// Deeper directories are not entered: each level holds a descriptor.
pub const MAX_DEPTH: usize = 128;
/// A directory whose names take more than this is not sorted but refused.
const MAX_SORTED_BYTES: usize = 64 * 1024 * 1024;
const BUFFER_BYTES: usize = 32 * 1024;

/// The next piece of names, without `.` and `..`; nothing at the end.
pub fn next_names(directory: impl AsFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut raw = RawDir::new(directory, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = raw.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
        // The kernel's position is behind this piece; the next call goes on from there.
        if raw.is_buffer_empty() && !names.is_empty() {
            break;
        }
    }
    Ok(names)
}

/// Something that the walk has come to.
pub struct Found {
    pub name: Vec<u8>,
    /// Relative to where the walk began.
    pub path: Vec<u8>,
    pub stat: Stat,
}

/// Whether a directory was entered.
#[derive(PartialEq)]
pub enum Entry {
    Entered,
    TooDeep,
    /// /proc has nothing to list or pack.
    Skipped,
}

/// A walk in depth; whoever walks decides which directories to enter.
pub struct Tree {
    levels: Vec<Level>,
    is_sorted: bool,
}

struct Level {
    directory: OwnedFd,
    path: Vec<u8>,
    device: u64,
    /// In reverse, so that the next one is at the end.
    names: Vec<Vec<u8>>,
    is_read: bool,
}

impl Tree {
    /// `is_sorted` gives the same order every time, at the price of holding one directory's names per level.
    pub fn new(directory: OwnedFd, is_sorted: bool) -> Result<Self, Errno> {
        let mut tree = Self { levels: Vec::new(), is_sorted };
        tree.push(directory, Vec::new())?;
        Ok(tree)
    }

    /// The directory that the last found thing is in.
    pub fn directory(&self) -> BorrowedFd<'_> {
        // The walk's own level stays until `next` has said that it is over.
        self.levels[self.levels.len() - 1].directory.as_fd()
    }

    pub fn next(&mut self) -> Result<Option<Found>, Errno> {
        while let Some((level, above)) = self.levels.split_last_mut() {
            let has_above = !above.is_empty();
            let Some(name) = level.names.pop() else {
                if !level.is_read {
                    level.names = match next_names(&level.directory) {
                        // Removed since it was entered.
                        Err(Errno::NOENT | Errno::SRCH) if has_above => Vec::new(),
                        names => names?,
                    };
                    level.names.reverse();
                    level.is_read = level.names.is_empty();
                }
                let is_over = level.is_read;
                if is_over && !has_above {
                    return Ok(None);
                }
                if is_over {
                    self.levels.pop();
                }
                continue;
            };
            match statat(&level.directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let path = join(&level.path, &name);
                    return Ok(Some(Found { name, path, stat }));
                }
                // Gone since it was listed.
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Goes on inside a directory that was just found.
    pub fn enter(&mut self, found: &Found) -> Result<Entry, Errno> {
        if self.levels.len() >= MAX_DEPTH {
            return Ok(Entry::TooDeep);
        }
        let directory = reopen(self.directory(), &found.name, DIRECTORY)?;
        let is_crossing = self.levels.last().is_some_and(|level| level.device != found.stat.st_dev);
        if is_crossing && is_proc(&directory)? {
            return Ok(Entry::Skipped);
        }
        self.push(directory, found.path.clone())?;
        Ok(Entry::Entered)
    }

    fn push(&mut self, directory: OwnedFd, path: Vec<u8>) -> Result<(), Errno> {
        let device = fstat(&directory)?.st_dev;
        let mut names = Vec::new();
        if self.is_sorted {
            names = all_names(&directory)?;
            names.sort_unstable_by(|one, other| other.cmp(one));
        }
        self.levels.push(Level { directory, path, device, names, is_read: self.is_sorted });
        Ok(())
    }
}

fn all_names(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut all = Vec::new();
    let mut bytes = 0;
    loop {
        let names = next_names(directory)?;
        if names.is_empty() {
            return Ok(all);
        }
        bytes += names.iter().map(|name| name.len() + size_of::<Vec<u8>>()).sum::<usize>();
        if bytes > MAX_SORTED_BYTES {
            return Err(Errno::FBIG);
        }
        all.extend(names);
    }
}

pub fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}
