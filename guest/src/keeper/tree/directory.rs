//! Opening directories step by step.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, chmod, openat2},
    io::Errno,
};

use crate::keeper::failure::Failure;

/// One name in a directory. A file system that does not tell kinds says `Unknown`.
pub struct Entry {
    pub name: CString,
    pub kind: FileType,
}

/// A directory by its absolute path, in which no link may be.
pub fn open_root(path: &str) -> Result<OwnedFd, Failure> {
    let beneath_root = Path::new(path).is_absolute() && Path::new(path).file_name().is_some();
    if !beneath_root {
        return Err(Failure::new("INVALID_PATH", "a tree must be named by an absolute path"));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(|errno| match errno {
        Errno::NOENT => Failure::errno("PATH_NOT_FOUND", path, errno),
        Errno::NOTDIR => Failure::errno("NOT_A_DIRECTORY", path, errno),
        Errno::LOOP => Failure::new("INVALID_PATH", format!("{path} leads through a symbolic link")),
        _ => Failure::errno("PATH_DENIED", path, errno),
    })
}

/// A directory in a directory: not a link to one, and of the same mount.
pub fn open_child(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(
        parent,
        name,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV,
    )
}

/// What is in a directory that was opened by name only; with `force`, its owner's rights are given back first.
pub fn entries(directory: &OwnedFd, force: bool) -> Result<(OwnedFd, Vec<Entry>), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || openat2(directory, c".", flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_XDEV);
    if force {
        give_back_rights(directory);
    }
    let readable = open()?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&readable)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            found.push(Entry { name: entry.file_name().to_owned(), kind: entry.file_type() });
        }
    }
    Ok((readable, found))
}

/// Lets its owner do everything with a directory again. By the descriptor, so that the right one is
/// meant; a refusal shows in what follows.
pub fn give_back_rights(directory: &OwnedFd) {
    let _ = chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), Mode::RWXU);
}
