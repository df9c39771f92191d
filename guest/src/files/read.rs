//! Looking at files and reading them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{AtFlags, PROC_SUPER_MAGIC, fstat, fstatfs, statat},
    io::{Errno, pread},
};

use super::{
    Talk,
    entry::{entry, entry_in, kind},
    failure::{At, Stop, failure},
    path::SandboxPath,
    root::{LOOK, READ, Root},
};
use crate::proto::link::{Failure, FileEntry, ReadCall, StatCall, file_entry::Type};

pub const PIECE_BYTES: usize = 256 * 1024;
/// What is read of a file that says it is empty, as generated files do.
const UNSIZED_BYTES: u64 = 4 * 1024 * 1024;

pub fn stat(root: &Root, call: &StatCall) -> Result<FileEntry, Failure> {
    let path = SandboxPath::parse(&call.path)?;
    if call.follow || path.split().is_err() {
        let file = root.open_at(&path, LOOK).at(&path)?;
        return Ok(entry(call.path.as_bytes(), &fstat(&file).at(&path)?));
    }
    let place = root.place(&path)?;
    let stat = statat(&place.directory, place.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).at(&path)?;
    Ok(entry_in(&place.directory, &place.name, call.path.as_bytes(), &stat))
}

pub fn read(root: &Root, call: &ReadCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    let (file, found) = open_regular(root, &path)?;
    let size = found.size;
    talk.answer_entry(FileEntry { path: call.path.clone().into_bytes(), ..found })?;
    let mut left = match call.length {
        0 if size == 0 => UNSIZED_BYTES,
        // What a growing file gains meanwhile belongs to the next call.
        0 => size.saturating_sub(call.offset),
        length => length,
    };
    let mut offset = call.offset;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES))];
    while left > 0 {
        let wanted = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match pread(&file, &mut piece[..wanted], offset) {
            Ok(0) => break,
            Ok(length) => {
                talk.channel.send(&piece[..length])?;
                offset += length as u64;
                left -= length as u64;
            }
            Err(Errno::INTR) => {}
            // Beyond what an offset can be: past every end.
            Err(Errno::INVAL | Errno::OVERFLOW) => break,
            Err(error) => return Err(Err::<(), _>(error).at(&path).unwrap_err().into()),
        }
    }
    Ok(talk.channel.end()?)
}

/// Opens a regular file for reading; anything else is refused before it is opened.
fn open_regular(root: &Root, path: &SandboxPath) -> Result<(OwnedFd, FileEntry), Failure> {
    let seen = fstat(root.open_at(path, LOOK).at(path)?).at(path)?;
    check_regular(path, kind(&seen))?;
    let file = root.open_at(path, READ).at(path)?;
    let stat = fstat(&file).at(path)?;
    // It may have been replaced in between.
    check_regular(path, kind(&stat))?;
    if is_proc(&file).at(path)? {
        return Err(failure("PATH_DENIED", format!("{path}: a file of /proc, which would be the guest's own")));
    }
    Ok((file, entry(&[], &stat)))
}

pub fn check_regular(path: &SandboxPath, found: Type) -> Result<(), Failure> {
    match found {
        Type::Regular => Ok(()),
        Type::Directory => Err(failure("NOT_A_FILE", format!("{path}: a directory"))),
        _ => Err(failure("NOT_A_FILE", format!("{path}: not a regular file"))),
    }
}

/// What /proc says depends on who asks, and the guest is not the one it should be about.
pub fn is_proc(file: impl AsFd) -> Result<bool, Errno> {
    match fstatfs(file) {
        Ok(system) => Ok(system.f_type == PROC_SUPER_MAGIC),
        // gVisor has no answer for files that it makes up itself.
        Err(Errno::NOSYS) => Ok(true),
        Err(error) => Err(error),
    }
}
