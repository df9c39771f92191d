//! Pseudo-terminals, from the devpts of the sandbox.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{self, Mode, OFlags},
    io::{self, Errno},
    pty::{OpenptFlags, ioctl_tiocgptpeer, ptsname, unlockpt},
    termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};

/// The guest's side, which does not block, and the command's.
pub fn open(columns: u32, rows: u32) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let master = fs::open("/dev/ptmx", flags, Mode::empty())?;
    unlockpt(&master)?;
    let slave = match ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC) {
        // gVisor gives it only by its name, which nobody inside can turn into something else.
        Err(Errno::NOTTY) => {
            fs::open(ptsname(&master, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?
        }
        other => other?,
    };
    resize(&master, columns, rows)?;
    // Erasing takes whole characters away.
    let mut modes = tcgetattr(&slave)?;
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    Ok((master, slave))
}

/// Numbers beyond what a terminal can have are cut to that.
pub fn resize(master: impl AsFd, columns: u32, rows: u32) -> io::Result<()> {
    let cut = |size: u32| size.min(u32::from(u16::MAX)) as u16;
    tcsetwinsize(master, Winsize { ws_row: cut(rows), ws_col: cut(columns), ws_xpixel: 0, ws_ypixel: 0 })
}
