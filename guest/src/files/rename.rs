//! Moving within one file system. A link is moved as itself.

use rustix::{
    fs::{AtFlags, renameat, statat},
    io::Errno,
};

use super::{
    entry::entry_in,
    failure::{At, failure},
    path::SandboxPath,
    root::Root,
    write::{COMMIT, rename_to_free},
};
use crate::proto::link::{Failure, FileEntry, MoveCall};

pub fn rename(root: &Root, call: &MoveCall) -> Result<FileEntry, Failure> {
    let from = SandboxPath::parse(&call.from)?;
    let to = SandboxPath::parse(&call.to)?;
    let source = root.place(&from)?;
    let target = root.place(&to)?;
    if source.look().at(&from)?.is_none() {
        return Err(Errno::NOENT).at(&from);
    }
    let _alone = COMMIT.lock();
    let moved = if call.overwrite {
        renameat(&source.directory, source.name.as_slice(), &target.directory, target.name.as_slice())
    } else {
        rename_to_free(&source.directory, &source.name, &target.directory, &target.name)
    };
    match moved {
        Ok(()) => {}
        Err(Errno::INVAL) => {
            return Err(failure("INVALID_INPUT", format!("{from} cannot be moved into itself")));
        }
        Err(Errno::XDEV) => {
            return Err(failure("PATH_DENIED", format!("{from} and {to} are on different file systems: copy it")));
        }
        Err(Errno::NOENT) => return Err(Errno::NOENT).at(&from),
        Err(error) => return Err(error).at(&to),
    }
    let stat = statat(&target.directory, target.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).at(&to)?;
    Ok(entry_in(&target.directory, &target.name, call.to.as_bytes(), &stat))
}
