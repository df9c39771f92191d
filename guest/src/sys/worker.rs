//! Forking a process that has a single thread, and leaving the child without running anybody's destructors.

use rustix::{io::Errno, process::Pid};

use super::check;

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

/// Ends this process without flushing or dropping what it shares with its parent.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches nothing of ours.
    unsafe { libc::_exit(code) }
}
