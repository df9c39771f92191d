//! Single members of a tree, by name: what the daemon does not have yet of a project that it once sent.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{fstat, readlinkat},
    io::Errno,
};

use super::Out;
use crate::{
    files::{
        entry::kind,
        failure::{At, Stop, failure, from_errno},
        path::SandboxPath,
        root::{LOOK, READ, Root},
        tar::Kind,
    },
    proto::link::file_entry::Type,
};

pub fn pack(
    root: &Root,
    path: &SandboxPath,
    directory: &OwnedFd,
    names: &[Vec<u8>],
    out: &mut Out<'_, '_>,
) -> Result<(), Stop> {
    for name in names {
        if name.is_empty() || name[0] == b'/' || name.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return Err(failure("INVALID_PATH", "a name that is not below the directory").into());
        }
        match one(root, path, directory, name, out) {
            // Gone, or no such thing any more: the next look will tell.
            Err(Stop::Failed(failure)) if is_gone(failure.errno) => {}
            other => other?,
        }
    }
    Ok(())
}

fn one(root: &Root, path: &SandboxPath, directory: &OwnedFd, name: &[u8], out: &mut Out<'_, '_>) -> Result<(), Stop> {
    let shown = format!("{path}/{}", String::from_utf8_lossy(name).escape_debug());
    let at = |error: Errno| Stop::from(from_errno(&shown, error));
    let place = root.open_below(directory, name, LOOK, false).map_err(at)?;
    let stat = fstat(&place).map_err(at)?;
    match kind(&stat) {
        Type::Directory => out.member(Kind::Directory, [name, b"/"].concat(), Vec::new(), &stat),
        Type::Symlink => {
            let target = readlinkat(&place, "", Vec::new()).map_err(at)?.into_bytes();
            out.member(Kind::Symlink, name.to_vec(), target, &stat)
        }
        Type::Regular => {
            let file = root.open_below(directory, name, READ, false).map_err(at)?;
            let stat = fstat(&file).at(path)?;
            if kind(&stat) != Type::Regular {
                return Ok(());
            }
            out.member(Kind::File, name.to_vec(), Vec::new(), &stat)?;
            out.content(&shown, &file, stat.st_size as u64)
        }
        _ => Ok(()),
    }
}

fn is_gone(errno: u32) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO];
    gone.iter().any(|known| known.raw_os_error() as u32 == errno)
}
