//! Monitors: what stands between PID 1 and a command.
//!
//! A monitor is a subreaper, so that nothing can leave its command's tree by a double fork. It stays
//! while anything of the tree lives. It is a fork of PID 1 that never calls exec, and PID 1 may have
//! other threads: so it allocates nothing and takes no lock. What to start is told by a plan: one that was
//! made before the fork or, where the monitor is a *spare* one, one that the command's process waits for at its socket.

use std::{
    ffi::c_int,
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    sync::atomic::AtomicI32,
};

use super::{
    command::{self, Confine, errno},
    plan::{Job, Plan},
    reap,
    report::{Report, Step},
    signals,
};

/// Where a monitor has its socket to PID 1.
const SOCKET: c_int = 3;

/// Forks a monitor that starts `plan` at once with these three descriptors, and gives its pid. Its
/// reports go to `socket`, the command's pid to `slot`. No descriptor is one of 0 to 2.
pub fn start(
    plan: &Plan,
    stdio: [BorrowedFd<'_>; 3],
    socket: BorrowedFd<'_>,
    slot: &AtomicI32,
    confine: Confine,
) -> io::Result<i32> {
    let stdio = stdio.map(|fd| fd.as_raw_fd());
    let mut pointers = vec![ptr::null(); plan.pointers()];
    let job = Job::read(plan.bytes(), &mut pointers).ok_or(io::ErrorKind::InvalidInput)?;
    fork(|| {
        settle(socket.as_raw_fd(), stdio);
        watch(Some(&job), slot, confine)
    })
}

/// Forks a monitor whose command's process waits for a plan. The command gets these three descriptors, unless others come with the plan.
pub fn start_spare(
    stdio: [BorrowedFd<'_>; 3],
    socket: BorrowedFd<'_>,
    slot: &AtomicI32,
    confine: Confine,
) -> io::Result<i32> {
    let stdio = stdio.map(|fd| fd.as_raw_fd());
    fork(|| {
        settle(socket.as_raw_fd(), stdio);
        // What others send to everybody is not meant for a command that does not run yet.
        signals::swallow();
        watch(None, slot, confine)
    })
}

/// From its first moment only SIGKILL and SIGSTOP reach the child: what others send to everybody would end it.
fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the masks live through the calls. The child only runs `child`, which makes system calls, allocates nothing and
    // never returns; if it did, it would end here.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let forked = match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                child();
                leave()
            }
            pid => Ok(pid),
        };
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        forked
    }
}

/// Keeps the socket and three descriptors, closes all others. What is the same for all commands is done
/// here, so that a command that comes to a spare monitor need not wait for it.
fn settle(socket: c_int, stdio: [c_int; 3]) {
    // SAFETY: system calls on descriptors only; nothing of the parent's memory is freed.
    unsafe {
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

/// The rest of a monitor's life.
fn watch(job: Option<&Job<'_>>, slot: &AtomicI32, confine: Confine) -> ! {
    let pid = match command::start(command::Start { job, socket: SOCKET, confine }, slot) {
        Ok(Some(pid)) => pid,
        Ok(None) => leave(),
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
    // SAFETY: no memory is touched but `limit`, which lives through the call.
    unsafe {
        // gVisor refuses a bound that no descriptor can have.
        if libc::syscall(libc::SYS_close_range, first, i32::MAX as u32, 0) == 0 {
            return;
        }
        let mut limit: libc::rlimit64 = mem::zeroed();
        libc::prlimit64(0, libc::RLIMIT_NOFILE, ptr::null(), &mut limit);
        for fd in first..=limit.rlim_cur.min(65_536) as u32 {
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
