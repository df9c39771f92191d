//! Making directories.

use std::os::fd::AsFd;

use rustix::{
    fs::{Mode, OFlags, fchmod, fstat, mkdirat},
    io::Errno,
};

use super::{
    entry::entry,
    failure::{At, failure},
    path::SandboxPath,
    root::{DIRECTORY, LOOK, Place, Root, reopen},
};
use crate::proto::link::{Failure, FileEntry, MkdirCall};

const PERMISSIONS: u32 = 0o777;
const DEFAULT_MODE: u32 = 0o755;

pub fn mkdir(root: &Root, call: &MkdirCall) -> Result<FileEntry, Failure> {
    let path = SandboxPath::parse(&call.path)?;
    if call.parents {
        make_parents(root, &path.split()?.0)?;
    }
    let place = root.place(&path)?;
    let mode = if call.mode != 0 { call.mode & PERMISSIONS } else { DEFAULT_MODE };
    match make(&place, mode) {
        Ok(()) => {}
        Err(Errno::EXIST) if call.parents => {}
        result => result.at(&path)?,
    }
    let directory = root.open_at(&path, LOOK).at(&path)?;
    let stat = fstat(directory).at(&path)?;
    let entry = entry(call.path.as_bytes(), &stat);
    if entry.r#type() != crate::proto::link::file_entry::Type::Directory {
        return Err(failure("PATH_EXISTS", format!("{path}: already there and not a directory")));
    }
    Ok(entry)
}

/// Makes every directory on the way to this one that is missing.
pub fn make_parents(root: &Root, path: &SandboxPath) -> Result<(), Failure> {
    // Mostly there is nothing to make.
    if root.open_at(path, LOOK | OFlags::DIRECTORY).is_ok() {
        return Ok(());
    }
    for prefix in path.prefixes() {
        match root.open_at(&prefix, LOOK | OFlags::DIRECTORY) {
            Ok(_) => continue,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).at(&prefix),
        }
        match make(&root.place(&prefix)?, DEFAULT_MODE) {
            // Made by somebody else meanwhile, or a link that leads nowhere: the next look tells.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error).at(&prefix),
        }
    }
    root.open_at(path, LOOK | OFlags::DIRECTORY).at(path).map(drop)
}

/// Makes one directory with exactly this mode, whatever the process's mask is.
pub fn make(place: &Place, mode: u32) -> Result<(), Errno> {
    mkdirat(&place.directory, place.name.as_slice(), Mode::RWXU)?;
    let directory = reopen(place.directory.as_fd(), &place.name, DIRECTORY)?;
    fchmod(directory, Mode::from_raw_mode(mode))
}
