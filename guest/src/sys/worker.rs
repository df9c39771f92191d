//! Forking a process that has a single thread, and leaving the child without running anybody's destructors.

use std::{
    mem,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::{io::Errno, process::Pid};

use super::check;

/// The kernel's; the C library's bindings have it in a type that is too narrow.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of a fork this is.
pub enum Forked {
    Parent(Pid),
    Child,
}

/// Duplicates this process. Only for processes with one thread: the child may then do all that its
/// parent could, allocating included.
pub fn fork() -> Result<Forked, Errno> {
    // SAFETY: fork has no preconditions; with one thread no lock can be held by a thread that the child lacks.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok(Pid::from_raw(pid as i32).map_or(Forked::Child, Forked::Parent))
}

/// The same; the child is born in the control group (of the second version) that has this directory.
pub fn fork_into(group: BorrowedFd<'_>) -> Result<Forked, Errno> {
    // SAFETY: a structure of integers, of which zero means nothing.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = group.as_raw_fd() as u64;
    // SAFETY: as fork: nothing is shared and no stack is given, so that the child goes on with a copy of everything. What the C library
    // would note of it is its thread's number, of which only locks and signals to itself make use.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, mem::size_of_val(&arguments)) })?;
    Ok(Pid::from_raw(pid as i32).map_or(Forked::Child, Forked::Parent))
}

/// Ends this process without flushing or dropping what it shares with its parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches nothing of ours.
    unsafe { libc::_exit(code) }
}
