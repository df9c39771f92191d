//! Removing a tree.

use std::{
    ffi::{CStr, CString},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, renameat, statat, unlinkat},
    io::Errno,
};

use super::directory::{entries, give_back_rights, open_child, open_root};
use crate::{
    keeper::failure::Failure,
    proto::keeper::{Removed, keeper_reply::Reply},
};

/// Below this depth directories are moved up and removed from there, so that the depth of a tree costs no descriptors.
const MAX_DEPTH: usize = 64;
/// Somebody may still be writing; he has this many chances.
const ATTEMPTS: usize = 8;

/// In a worker. A tree that is not there is removed already.
pub fn remove_tree(path: &str) -> Result<Reply, Failure> {
    let (Some(parent), Some(name)) = (Path::new(path).parent(), Path::new(path).file_name()) else {
        return Err(Failure::new("INVALID_PATH", "a tree must be named by an absolute path"));
    };
    let name = CString::new(name.as_encoded_bytes()).map_err(|_| Failure::new("INVALID_PATH", "a NUL in a path"))?;
    let gone = |failure: &Failure| failure.code == "PATH_NOT_FOUND";
    let parent = match open_root(&parent.to_string_lossy()) {
        Err(failure) if gone(&failure) => return Ok(Reply::Removed(Removed::default())),
        opened => opened?,
    };
    let root = match open_root(path) {
        Err(failure) if gone(&failure) => return Ok(Reply::Removed(Removed::default())),
        opened => opened?,
    };
    let mut removal = Removal { root: &root, bytes: 0, moved: 0 };
    let failed = |errno| Failure::errno("STORAGE_FAILED", format!("removing {path}"), errno);
    for attempt in 1.. {
        removal.empty(&root, 0).map_err(failed)?;
        match unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => break,
            Err(Errno::NOTEMPTY) if attempt < ATTEMPTS => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(Reply::Removed(Removed { bytes: removal.bytes }))
}

struct Removal<'a> {
    root: &'a OwnedFd,
    bytes: u64,
    moved: u64,
}

impl Removal<'_> {
    /// Removes what is in a directory. What resists does not keep the rest.
    fn empty(&mut self, directory: &OwnedFd, depth: usize) -> Result<(), Errno> {
        let mut resisted = Ok(());
        // Again as long as something was moved up here meanwhile.
        loop {
            let moved = self.moved;
            let (readable, found) = entries(directory, true)?;
            for entry in found {
                if let Err(errno) = self.remove(&readable, &entry.name, entry.kind, depth) {
                    resisted = Err(errno);
                }
            }
            if depth > 0 || self.moved == moved || resisted.is_err() {
                return resisted;
            }
        }
    }

    fn remove(&mut self, directory: &OwnedFd, name: &CStr, kind: FileType, depth: usize) -> Result<(), Errno> {
        if let Ok(status) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            && status.st_nlink <= 1
        {
            self.bytes += status.st_blocks as u64 * 512;
        }
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            return match unlinkat(directory, name, AtFlags::empty()) {
                // It has become a directory since it was listed.
                Err(Errno::ISDIR) => self.remove_directory(directory, name, depth),
                result => gone_is_good(result),
            };
        }
        match self.remove_directory(directory, name, depth) {
            Err(Errno::NOTDIR | Errno::LOOP) => gone_is_good(unlinkat(directory, name, AtFlags::empty())),
            result => result,
        }
    }

    fn remove_directory(&mut self, parent: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Errno> {
        let child = match open_child(parent, name) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened?,
        };
        if depth >= MAX_DEPTH {
            return self.move_up(parent, name, &child);
        }
        for attempt in 1.. {
            self.empty(&child, depth + 1)?;
            match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY) if attempt < ATTEMPTS => {}
                result => return gone_is_good(result),
            }
        }
        Ok(())
    }

    /// A directory can change its parent only while its owner may write to it.
    fn move_up(&mut self, parent: &OwnedFd, name: &CStr, child: &OwnedFd) -> Result<(), Errno> {
        give_back_rights(child);
        self.moved += 1;
        let free = CString::new(format!(".caisson-removal-{}", self.moved)).expect("no NUL");
        renameat(parent, name, self.root, &free)
    }
}

fn gone_is_good(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}
