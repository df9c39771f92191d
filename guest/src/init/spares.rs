//! Monitors that wait for a command, and with each the process that will become it. Forking takes its time, and on a busy machine a new
//! process waits longer for its first turn than one that wakes up: a spare monitor spares a command both. The process has its part of
//! the wall and the pipes for its output already; it only has to be told what to execute.

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::Ordering,
};

use prost::Message as _;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
        socketpair,
    },
};

use super::{command::Command, guest::Guest, starting::reading_pipe};
use crate::{
    proto::link::{HostControl, Start, host_control::Message},
    sys::{
        monitor,
        plan::Plan,
        plan_room::{ROOM_BYTES, ROOM_POINTERS},
    },
    wall,
};

/// The stream of monitors that have none.
pub const NO_STREAM: u32 = 0;
/// How many are made at once where a fork is dear: after each, PID 1 fetches its own memory anew, page by page, and the
/// next command waits for it.
const BATCH: usize = 4;

pub struct Spare {
    pub pid: i32,
    /// Where its command's pid is noted.
    pub slot: u32,
    /// On which it tells about its command.
    pub socket: OwnedFd,
    /// Standard output and standard error of its command.
    pub output: [OwnedFd; 2],
}

impl Guest {
    /// A spare monitor that has started the plan, with these descriptors or its own.
    pub fn employ_spare(&mut self, plan: &Plan, stdio: Option<[BorrowedFd<'_>; 3]>) -> Option<Spare> {
        let fits = plan.bytes().len() <= ROOM_BYTES && plan.pointers() <= ROOM_POINTERS;
        while let Some(spare) = self.spares.pop().filter(|_| fits) {
            if spare.is_told(plan, stdio) {
                return Some(spare);
            }
        }
        None
    }

    /// A new monitor that starts the plan: its pid, its slot and the socket on which it tells about it.
    pub fn employ_new(&mut self, plan: &Plan, stdio: [BorrowedFd<'_>; 3]) -> Result<(i32, u32, OwnedFd), Errno> {
        let (ours, theirs) = sockets()?;
        let slot = self.next_slot();
        let noted = self.board.slot(slot);
        let fork = || monitor::start(plan, stdio, theirs.as_fd(), noted, wall::confine_command);
        let pid = wall::expendable(fork).map_err(errno)?;
        Ok((pid, slot, ours))
    }

    /// Processes that are not yet commands.
    pub fn waiting(&self) -> impl Iterator<Item = i32> {
        self.spares.iter().map(|spare| self.board.slot(spare.slot).load(Ordering::Relaxed)).filter(|pid| *pid > 0)
    }

    fn next_slot(&mut self) -> u32 {
        self.last_slot = self.last_slot.wrapping_add(1);
        self.board.slot(self.last_slot).store(0, Ordering::Relaxed);
        self.last_slot
    }

    /// Makes spare monitors if there is none. A sandbox that has been closed without a command waits for its first one;
    /// one that has run a single command may never run another.
    pub fn refill(&mut self) {
        self.refill_due = false;
        if !self.spares.is_empty() || self.starts == 1 {
            return;
        }
        let Some(world) = self.wall.world_mut() else { return };
        world.look_around();
        let wanted = if world.in_gvisor && self.starts > 1 { BATCH } else { 1 };
        while self.spares.len() < wanted {
            match self.make_spare() {
                Ok(spare) => {
                    self.monitors.insert(spare.pid, NO_STREAM);
                    self.spares.push(spare);
                }
                Err(_) => return,
            }
        }
        self.rehearse();
    }

    /// Has the memory at hand that the next command will need, where a fork has taken it away.
    fn rehearse(&self) {
        let Some(world) = self.wall.world().filter(|world| world.in_gvisor) else { return };
        let name = if world.last_name.is_empty() { "sh" } else { &world.last_name };
        let control = HostControl {
            id: 1,
            message: Some(Message::Start(Start { argv: vec![name.into()], stream: 1, ..Start::default() })),
        };
        let decoded = HostControl::decode(control.encode_to_vec().as_slice());
        if let Ok(HostControl { message: Some(Message::Start(start)), .. }) = decoded {
            std::hint::black_box(Command::new(world, &start).is_ok());
        }
    }

    fn make_spare(&mut self) -> Result<Spare, Errno> {
        let slot = self.next_slot();
        let world = self.wall.world().ok_or(Errno::INVAL)?;
        let (socket, theirs) = sockets()?;
        let (stdout, of_stdout) = reading_pipe()?;
        let (stderr, of_stderr) = reading_pipe()?;
        let stdio = [world.null.as_fd(), of_stdout.as_fd(), of_stderr.as_fd()];
        let noted = self.board.slot(slot);
        let fork = || monitor::start_spare(stdio, theirs.as_fd(), noted, wall::confine_command);
        let pid = wall::expendable(fork).map_err(errno)?;
        Ok(Spare { pid, slot, socket, output: [stdout, stderr] })
    }
}

impl Spare {
    /// Gives it the plan, and three descriptors if the command is to have others than the spare's own.
    fn is_told(&self, plan: &Plan, stdio: Option<[BorrowedFd<'_>; 3]>) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(stdio) = &stdio {
            control.push(SendAncillaryMessage::ScmRights(stdio));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // A new socket has room for more than the largest plan.
        let sent = sendmsg(&self.socket, &[IoSlice::new(plan.bytes())], &mut control, flags);
        sent.is_ok_and(|count| count == plan.bytes().len())
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
