//! Monitors that wait for a command. Forking takes its time, and on a busy machine a new process waits
//! longer for its first turn than one that wakes up: a spare monitor spares a command both.

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
        socketpair,
    },
};

use super::guest::Guest;
use crate::{
    sys::{
        monitor::{self, SPARE_BYTES, SPARE_POINTERS},
        plan::Plan,
    },
    wall,
};

/// The stream of monitors that have none.
pub const NO_STREAM: u32 = 0;

pub struct Spare {
    pub pid: i32,
    socket: OwnedFd,
}

impl Guest {
    /// A monitor that starts the plan, and the socket on which it tells about it.
    pub fn employ(&mut self, plan: &Plan, stdio: [BorrowedFd<'_>; 3]) -> Result<(i32, OwnedFd), Errno> {
        let fits = plan.bytes().len() <= SPARE_BYTES && plan.pointers() <= SPARE_POINTERS;
        while let Some(spare) = self.spares.pop().filter(|_| fits) {
            if hand_over(&spare.socket, plan, stdio).is_ok() {
                return Ok((spare.pid, spare.socket));
            }
        }
        let (ours, theirs) = sockets()?;
        let fork = || monitor::start(plan, stdio, theirs.as_fd(), &self.board, wall::confine_command);
        let pid = wall::expendable(fork).map_err(errno)?;
        Ok((pid, ours))
    }

    /// Makes a spare monitor if there is none. A sandbox that has been closed without a command waits for its first one;
    /// one that has run a single command may never run another.
    pub fn refill(&mut self) {
        self.refill_due = false;
        if !self.spares.is_empty() || self.starts == 1 {
            return;
        }
        if let Some(world) = self.wall.world_mut() {
            world.look_around();
        }
        let Ok((ours, theirs)) = sockets() else { return };
        let fork = || monitor::start_spare(theirs.as_fd(), &self.board, wall::confine_command);
        if let Ok(pid) = wall::expendable(fork) {
            self.monitors.insert(pid, NO_STREAM);
            self.spares.push(Spare { pid, socket: ours });
        }
    }
}

fn hand_over(socket: &OwnedFd, plan: &Plan, stdio: [BorrowedFd<'_>; 3]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&stdio));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match sendmsg(socket, &[IoSlice::new(plan.bytes())], &mut control, flags) {
        Ok(count) if count == plan.bytes().len() => Ok(()),
        // A new socket has room for more than the largest plan.
        Ok(_) => Err(Errno::AGAIN),
        Err(errno) => Err(errno),
    }
}

fn sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)
}
