//! Removing, also whole trees: never through a link, never into another mount, however deep the tree
//! and whatever its modes. Only one directory is open at a time; the way up is checked, so a
//! directory that is moved away underneath us ends the descent instead of misleading it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, chmodat, fchmod, fstat, openat, seek, statat, unlinkat},
    io::Errno,
};

use super::{
    directory::next_names,
    failure::{At, failure},
    path::SandboxPath,
    root::{DIRECTORY, LOOK, Root},
};
use crate::proto::link::{Failure, RemoveCall};

/// How often a tree that changes meanwhile is begun again.
const ATTEMPTS: u32 = 16;
/// Somebody may add names as fast as we remove them; this is where we give up.
const MAX_STEPS: u64 = 20_000_000;

pub fn remove(root: &Root, call: &RemoveCall) -> Result<(), Failure> {
    let path = SandboxPath::parse(&call.path)?;
    let place = root.place(&path)?;
    let result = if call.recursive {
        remove_tree(root, &place.directory, &place.name)
    } else {
        remove_one(&place.directory, &place.name)
    };
    match result {
        Err(Errno::XDEV | Errno::BUSY) => {
            Err(failure("PATH_DENIED", format!("{path}: a mount, or one lies below it; mounts stay")))
        }
        result => result.at(&path),
    }
}

fn remove_one(directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) if is_directory(directory, name)? => {
            unlinkat(directory, name, AtFlags::REMOVEDIR)
        }
        result => result,
    }
}

/// Removes a name with everything below it.
pub fn remove_tree(root: &Root, directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    for _ in 0..ATTEMPTS {
        match remove_one(directory, name) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            result => return result,
        }
        let top = open_child(root, directory, name)?;
        match empty(root, top) {
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
    remove_one(directory, name)
}

/// One directory on the way down.
struct Level {
    name: Vec<u8>,
    identity: (u64, u64),
    names: Vec<Vec<u8>>,
}

/// Removes everything in a directory. AGAIN: the tree was moved about; begin again.
fn empty(root: &Root, top: OwnedFd) -> Result<(), Errno> {
    let mut levels = vec![Level { name: Vec::new(), identity: identity(&top)?, names: Vec::new() }];
    let mut here = top;
    let mut steps = 0_u64;
    while let Some(level) = levels.last_mut() {
        steps += 1;
        if steps > MAX_STEPS {
            return Err(Errno::NOTEMPTY);
        }
        if let Some(name) = level.names.pop() {
            match with_access(&here, || remove_one(&here, &name)) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => match open_child(root, &here, &name) {
                    Ok(child) => {
                        levels.push(Level { name, identity: identity(&child)?, names: Vec::new() });
                        here = child;
                    }
                    Err(Errno::NOENT) => {}
                    // No directory any more; its turn comes again.
                    Err(Errno::NOTDIR | Errno::LOOP) => level.names.push(name),
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error),
            }
            continue;
        }
        // From the start again: a directory that shrinks while it is read may hide names.
        seek(&here, SeekFrom::Start(0))?;
        level.names = next_names(&here)?;
        if level.names.is_empty() {
            let Some(done) = levels.pop() else { return Ok(()) };
            let Some(parent) = levels.last_mut() else { return Ok(()) };
            let above = with_access(&here, || openat(&here, "..", DIRECTORY | OFlags::NOFOLLOW, Mode::empty()))?;
            if identity(&above)? != parent.identity {
                return Err(Errno::AGAIN);
            }
            here = above;
            // Now empty, or filled again and to be gone through once more.
            parent.names.push(done.name);
        }
    }
    Ok(())
}

/// Opens a directory to empty it; one that is closed to its owner is opened up first.
fn open_child(root: &Root, directory: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    match root.open_below(directory, name, DIRECTORY, false) {
        Err(Errno::ACCESS) => {}
        result => return result,
    }
    let child = root.open_below(directory, name, LOOK | OFlags::DIRECTORY, false)?;
    // The descriptor names the directory itself, where its name could have become a link by now.
    chmodat(CWD, format!("/proc/self/fd/{}", child.as_raw_fd()), Mode::RWXU, AtFlags::empty())?;
    root.open_below(directory, name, DIRECTORY, false)
}

/// Tries once more after giving ourselves the right to change the directory.
fn with_access<T>(directory: &OwnedFd, work: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match work() {
        Err(Errno::ACCESS) => {
            fchmod(directory, Mode::RWXU)?;
            work()
        }
        result => result,
    }
}

fn is_directory(directory: &OwnedFd, name: &[u8]) -> Result<bool, Errno> {
    let stat = statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}
