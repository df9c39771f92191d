//! Unix sockets at paths of any length: by way of their directory's descriptor, since the kernel takes 107 bytes.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with},
    process::umask,
};

/// A listening socket that only this user can connect to.
pub fn listening(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = stream_socket()?;
    let (_directory, short) = shortened(path)?;
    let before = umask(Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &SocketAddrUnix::new(&short)?);
    umask(before);
    bound?;
    listen(&socket, 16)?;
    Ok(socket)
}

pub fn connected(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = stream_socket()?;
    let (_directory, short) = shortened(path)?;
    connect(&socket, &SocketAddrUnix::new(&short)?)?;
    Ok(socket)
}

fn stream_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// A name for the path that is valid while the descriptor lives.
fn shortened(path: &Path) -> Result<(OwnedFd, PathBuf), Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let directory = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
    Ok((directory, short))
}
