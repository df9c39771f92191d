//! Forking a process that has a single thread, and leaving the child without running anybody's destructors.

use rustix::{io::Errno, process::Pid};

/// Which side of a fork this is.
pub enum Forked {
    Parent(Pid),
    Child,
}

/// Duplicates this process. Only for processes with one thread: the child may then do all that its
/// parent could, allocating included.
pub fn fork() -> Result<Forked, Errno> {
    // SAFETY: fork has no preconditions; with one thread no lock can be held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(Pid::from_raw(pid).expect("a positive pid"))),
    }
}

/// Ends this process without flushing or dropping what it shares with its parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches nothing of ours.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from `first` on, whoever owns it. Nothing that held one may be used afterwards:
/// this is for children that go on to do one thing.
pub fn close_from(first: u32) -> Result<(), Errno> {
    // SAFETY: closing descriptors is memory-safe; the caller gives up their owners.
    match unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
