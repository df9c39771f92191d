//! Connecting to the daemon's socket, and only to a daemon of the same user or root.

use std::{
    io,
    os::fd::AsRawFd,
    os::unix::{ffi::OsStrExt, net::UnixStream},
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags},
    process::Pid,
};

use super::{
    home::{Home, is_ours},
    trouble::Trouble,
};

/// What fits into a socket's address, without its final NUL.
const ADDRESS_BYTES: usize = 107;

pub struct Connection {
    pub stream: UnixStream,
    /// The daemon's process, where the kernel can name it.
    pub peer: Option<Pid>,
}

/// Connects; `None` when nobody listens.
pub fn connect(home: &Home) -> Result<Option<Connection>, Trouble> {
    home.check()?;
    let stream = match connect_to(home) {
        Ok(stream) => stream,
        Err(error) if nobody_listens(&error) => return Ok(None),
        Err(error) => {
            return Err(Trouble::new(
                format!("cannot reach the daemon at {}: {error}", home.socket().display()),
                "The socket serves its owner only; run as that user, or set CAISSON_HOME.",
            ));
        }
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| {
        Trouble::new(format!("cannot tell whose daemon this is: {error}"), "Report it with your kernel's version.")
    })?;
    if !is_ours(peer.uid.as_raw()) {
        return Err(Trouble::new(
            format!("the daemon at {} runs as another user (uid {})", home.socket().display(), peer.uid.as_raw()),
            "Set CAISSON_HOME to a directory of your own.",
        ));
    }
    // The kernel says 0 for a process outside our pid namespace.
    let peer = Some(peer.pid).filter(|pid| pid.as_raw_nonzero().get() > 0);
    Ok(Some(Connection { stream, peer }))
}

fn connect_to(home: &Home) -> io::Result<UnixStream> {
    let path = home.socket();
    if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES {
        return UnixStream::connect(path);
    }
    // A long path goes by way of its directory's descriptor.
    let run = rustix::fs::open(home.run(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    UnixStream::connect(PathBuf::from(format!("/proc/self/fd/{}/daemon.sock", run.as_raw_fd())))
}

fn nobody_listens(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
