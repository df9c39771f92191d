//! Monitors: what stands between PID 1 and a command.
//!
//! A monitor is a subreaper, so that nothing can leave its command's tree by a double fork. It stays
//! while anything of the tree lives. It is a fork of PID 1 that never calls exec, and PID 1 may have
//! other threads: so it allocates nothing and takes no lock. It is told what to start by a plan, either
//! one that was made before the fork or, in a *spare* monitor, one that comes through its socket.

use std::{
    cell::UnsafeCell,
    ffi::{c_char, c_int},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

use super::{
    board::Board,
    command::{self, Confine, errno},
    plan::{Job, Plan},
    reap,
    report::{Report, Step},
};

/// Where a monitor has its socket to PID 1.
const SOCKET: c_int = 3;

/// What a plan may need to be sent to a spare monitor.
pub const SPARE_BYTES: usize = 64 * 1024;
pub const SPARE_POINTERS: usize = 2048;

/// A spare monitor's memory for its plan: in every process, touched only where it is used.
struct Room(UnsafeCell<([u8; SPARE_BYTES], [*const c_char; SPARE_POINTERS])>);
// SAFETY: only a monitor, which has one thread, ever touches it, and each has its own copy.
unsafe impl Sync for Room {}
static ROOM: Room = Room(UnsafeCell::new(([0; SPARE_BYTES], [ptr::null(); SPARE_POINTERS])));

/// Forks a monitor that starts `plan` at once with these three descriptors, and gives its pid. Its
/// reports go to `socket`. No descriptor is one of 0 to 2.
pub fn start(
    plan: &Plan,
    stdio: [BorrowedFd<'_>; 3],
    socket: BorrowedFd<'_>,
    board: &Board,
    confine: Confine,
) -> io::Result<i32> {
    let stdio = stdio.map(|fd| fd.as_raw_fd());
    let mut pointers = vec![ptr::null(); plan.pointers()];
    let job = Job::read(plan.bytes(), &mut pointers).ok_or(io::ErrorKind::InvalidInput)?;
    fork(|| {
        settle(socket.as_raw_fd(), stdio);
        watch(&job, board, confine)
    })
}

/// Forks a monitor that waits for a plan. The command gets these three descriptors, unless others come with the plan.
pub fn start_spare(
    stdio: [BorrowedFd<'_>; 3],
    socket: BorrowedFd<'_>,
    board: &Board,
    confine: Confine,
) -> io::Result<i32> {
    let stdio = stdio.map(|fd| fd.as_raw_fd());
    fork(|| {
        settle(socket.as_raw_fd(), stdio);
        // SAFETY: the only use of it in this process.
        let (bytes, pointers) = unsafe { &mut *ROOM.0.get() };
        let length = receive(bytes);
        match Job::read(&bytes[..length], pointers) {
            Some(job) => watch(&job, board, confine),
            None => leave(),
        }
    })
}

fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the child only runs `child`, which makes system calls, allocates nothing and never
    // returns; if it did, it would end here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child();
            leave()
        }
        pid => Ok(pid),
    }
}

/// Keeps the socket and three descriptors, closes all others, takes no signals. What is the same for all commands is done
/// here, so that a command that comes to a spare monitor need not wait for it.
fn settle(socket: c_int, stdio: [c_int; 3]) {
    // SAFETY: system calls on descriptors and masks only; nothing of the parent's memory is freed.
    unsafe {
        // Only SIGKILL and SIGSTOP reach the monitor from now on.
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        // For the command, which gets it from here.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::umask(0o022);
        libc::prctl(libc::PR_SET_NAME, c"caisson-monitor".as_ptr());
        // Older gVisors do not know it; the wall reports that.
        let mut fine = libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) == 0 || errno() == libc::EINVAL;
        for (target, fd) in stdio.into_iter().enumerate() {
            // PID 1 keeps 0 to 2 open, so all others are above them and none overwrites another.
            fine &= fd == target as c_int || libc::dup2(fd, target as c_int) >= 0;
        }
        if !fine || (socket != SOCKET && libc::dup3(socket, SOCKET, libc::O_CLOEXEC) < 0) {
            tell(socket, Report::Refused { step: Step::Monitor, errno: errno() });
            leave();
        }
    }
    close_from(SOCKET as u32 + 1);
}

/// Takes a plan, and descriptors if any come with it, from PID 1. Gives the plan's length, 0 when none comes.
fn receive(bytes: &mut [u8]) -> usize {
    let mut filled = 0;
    loop {
        let (count, descriptors) = receive_some(&mut bytes[filled..]);
        if count == 0 {
            return 0;
        }
        filled += count;
        if let Some(stdio) = descriptors {
            // SAFETY: descriptors that have just come, above those in use; system calls only.
            unsafe {
                for (target, fd) in stdio.into_iter().enumerate() {
                    libc::dup2(fd, target as c_int);
                }
            }
            close_from(SOCKET as u32 + 1);
        }
        match Job::length(&bytes[..filled]) {
            Some(length) if length <= filled => return length,
            Some(length) if length > bytes.len() => return 0,
            _ => {}
        }
    }
}

fn receive_some(bytes: &mut [u8]) -> (usize, Option<[c_int; 3]>) {
    // SAFETY: the message header points to `part`, `bytes` and `control`, which live through the call
    // and whose lengths it states; control data is read only as far as the kernel says it wrote it.
    unsafe {
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut control = [0u64; 8];
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        let count = libc::recvmsg(SOCKET, &mut message, 0);
        if count <= 0 {
            return (0, None);
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        let size = libc::CMSG_LEN(mem::size_of::<[c_int; 3]>() as u32) as usize;
        let descriptors =
            if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS && (*header).cmsg_len as usize == size {
                Some(ptr::read_unaligned(libc::CMSG_DATA(header).cast::<[c_int; 3]>()))
            } else {
                None
            };
        (count as usize, descriptors)
    }
}

/// The rest of a monitor's life.
fn watch(job: &Job<'_>, board: &Board, confine: Confine) -> ! {
    let started = command::start(job, confine, board.slot(job.slot));
    // The command has its own. Closing these lets readers see the end of its output.
    close_between(0, 2);
    let pid = match started {
        Ok(pid) => pid,
        Err((step, errno)) => {
            tell(SOCKET, Report::Refused { step, errno });
            leave()
        }
    };
    tell(SOCKET, Report::Started { pid });
    loop {
        match reap::wait_any(0) {
            Some(child) if child.pid == pid => {
                let left = reap::has_children();
                tell(SOCKET, Report::Exited { raw_status: child.raw_status, used: child.used, left });
                if !left {
                    leave();
                }
            }
            Some(_) => {}
            None if errno() == libc::EINTR => {}
            None => leave(),
        }
    }
}

/// Closes every descriptor from `first` on.
fn close_from(first: u32) {
    // gVisor refuses a bound that no descriptor can have.
    close_between(first, i32::MAX as u32);
}

/// Closes descriptors that the monitor does not use.
fn close_between(first: u32, last: u32) {
    // SAFETY: no memory is touched but `limit`, which lives through the call.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        let mut limit: libc::rlimit64 = mem::zeroed();
        libc::prlimit64(0, libc::RLIMIT_NOFILE, ptr::null(), &mut limit);
        for fd in first..=last.min(limit.rlim_cur.min(65_536) as u32) {
            libc::close(fd as c_int);
        }
    }
}

/// Says something to PID 1; nobody there is no reason to stop.
fn tell(socket: c_int, report: Report) {
    let bytes = report.encode();
    // SAFETY: `bytes` lives through the call.
    unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
}

fn leave() -> ! {
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(0) }
}
