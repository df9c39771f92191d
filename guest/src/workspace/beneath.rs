//! Opening things below a directory without ever leaving it or following a link.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    fs::{self, AtFlags, Mode, OFlags, RawDir, ResolveFlags, Stat},
    io::Errno,
};

/// Longer paths can be made step by step, but not be named to the kernel.
pub const MAX_PATH: usize = 4000;

const NO_LINKS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Opens a directory at `path` (relative, may be empty) below `root`; no component may be a link.
pub fn open_directory(root: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    retry(|| fs::openat2(&root, OsStr::from_bytes(path), flags, Mode::empty(), NO_LINKS))
}

/// Opens a regular file for reading, without waiting for anybody; anything else is EINVAL.
pub fn open_file(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = retry(|| fs::openat2(&dir, name, flags, Mode::empty(), NO_LINKS))?;
    if fs::FileType::from_raw_mode(fs::fstat(&file)?.st_mode) != fs::FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    Ok(file)
}

/// What is at `name`, itself; `None` if there is nothing.
pub fn stat(dir: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names in a directory, sorted by their bytes.
pub fn names(dir: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The parent's path and the last name of a relative path. Names that cannot be are refused.
pub fn split(path: &[u8]) -> Option<(&[u8], &OsStr)> {
    let bad = |part: &[u8]| part.is_empty() || part == b"." || part == b".." || part.contains(&0);
    if path.split(|&byte| byte == b'/').any(bad) {
        return None;
    }
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => Some((&path[..slash], OsStr::from_bytes(&path[slash + 1..]))),
        None => Some((b"", OsStr::from_bytes(path))),
    }
}

/// A path below another one.
pub fn join(parent: &[u8], name: &OsStr) -> Vec<u8> {
    if parent.is_empty() {
        return name.as_bytes().to_vec();
    }
    [parent, b"/", name.as_bytes()].concat()
}

/// openat2 says EAGAIN when a rename elsewhere disturbed it.
fn retry<T>(mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..64 {
        match open() {
            Err(Errno::AGAIN | Errno::INTR) => continue,
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}
