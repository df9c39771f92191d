//! The socket through which the daemon comes in, where none can be inherited.

use std::{fs, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::Mode,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::umask,
};

use crate::wall::tmpfs;

/// Listens in a directory of the host's, and covers the directory: nobody inside finds it again. It stays mounted
/// below, because gVisor's socket depends on it.
pub fn make_door(path: &Path) -> io::Result<OwnedFd> {
    let _ = fs::remove_file(path);
    let door = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&door, &SocketAddrUnix::new(path)?);
    umask(before);
    bound?;
    listen(&door, 16)?;
    let directory = path.parent().and_then(Path::to_str).ok_or(io::ErrorKind::InvalidInput)?;
    tmpfs::mount_at(directory, 0, 4096, 0)?;
    Ok(door)
}
