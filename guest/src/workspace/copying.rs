//! Copies of single files and links: clones where the file system makes them, with holes where the original has them.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps},
    io::Errno,
    process::{Gid, Uid, geteuid},
};

use super::{JobError, beneath};
use crate::sys::own_user_namespace;

/// Copies a regular file with its times and permission bits, or a link. A copy that was left half-made is replaced.
pub fn copy(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<(), JobError> {
    let stat = beneath::stat(&from.0, from.1)?.ok_or(Errno::NOENT)?;
    copy_with(from, to, &stat, stat.st_mode & 0o777)
}

/// The same for a file of the project itself, which keeps its owner and all of its mode. Of what is neither a file
/// nor a link a node of its kind is made.
pub fn copy_own(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<(), JobError> {
    let stat = beneath::stat(&from.0, from.1)?.ok_or(Errno::NOENT)?;
    let (dir, name) = (to.0.as_fd(), to.1);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Symlink => copy_with(from, (dir, name), &stat, stat.st_mode & 0o777)?,
        FileType::Directory => return Err(JobError::new("CONFLICT", "a directory was put in an applied file's place")),
        kind => match fs::mknodat(dir, name, kind, Mode::from_raw_mode(stat.st_mode & 0o777), stat.st_rdev) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        },
    }
    own(dir, name, stat.st_uid, stat.st_gid)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_mode & 0o7000 != 0 {
        fs::fchmod(beneath::open_file(dir, name)?, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    }
    Ok(())
}

fn copy_with(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr), stat: &Stat, mode: u32) -> Result<(), JobError> {
    match fs::unlinkat(&to.0, to.1, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = fs::readlinkat(from.0, from.1, Vec::new())?;
        return Ok(fs::symlinkat(target, &to.0, to.1)?);
    }
    let source = beneath::open_file(from.0, from.1)?;
    let copy = create(&to.0, to.1)?;
    copy_data(&source, &copy, stat.st_size as u64)?;
    let mtime = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
    fs::futimens(&copy, &Timestamps { last_access: mtime, last_modification: mtime })?;
    Ok(fs::fchmod(&copy, Mode::from_raw_mode(mode))?)
}

/// A new file for writing.
pub fn create(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))
}

/// Gives a file or link to somebody; only root can and needs to.
pub fn own(dir: impl AsFd, name: &OsStr, uid: u32, gid: u32) -> Result<(), Errno> {
    if own_user_namespace::entered() || !geteuid().is_root() {
        return Ok(());
    }
    fs::chownat(dir, name, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), AtFlags::SYMLINK_NOFOLLOW)
}

fn copy_data(source: &OwnedFd, copy: &OwnedFd, size: u64) -> Result<(), JobError> {
    if size == 0 {
        return Ok(());
    }
    if fs::ioctl_ficlone(copy, source).is_ok() {
        return Ok(());
    }
    let mut at = 0;
    while at < size {
        let start = match fs::seek(source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Only a hole is left.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error.into()),
        };
        let end = fs::seek(source, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        copy_range(source, copy, start, end)?;
        at = end.max(start + 1);
    }
    // A hole at the end has no data that would make the copy long enough.
    Ok(fs::ftruncate(copy, size)?)
}

fn copy_range(source: &OwnedFd, copy: &OwnedFd, start: u64, end: u64) -> Result<(), JobError> {
    let (mut from, mut to) = (start, start);
    while from < end {
        let length = (end - from) as usize;
        match fs::copy_file_range(source, Some(&mut from), copy, Some(&mut to), length) {
            // The file became shorter while it was read.
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                return by_hand(source, copy, from, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn by_hand(source: &OwnedFd, copy: &OwnedFd, start: u64, end: u64) -> Result<(), JobError> {
    let (mut source, mut copy) = (File::from(source.try_clone()?), File::from(copy.try_clone()?));
    io::Seek::seek(&mut source, io::SeekFrom::Start(start))?;
    io::Seek::seek(&mut copy, io::SeekFrom::Start(start))?;
    io::copy(&mut io::Read::take(&mut source, end - start), &mut copy)?;
    Ok(())
}
