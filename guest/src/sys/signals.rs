//! Signals: what PID 1 does with its own, and sending them to others.

use std::io;

/// Every signal gets its default action, whatever the starter left behind, save SIGPIPE: writing to
/// a closed pipe is to be an error.
pub fn reset_dispositions() {
    // The kernel's own form of it: handler, flags, restorer, mask. The C library keeps two signals for
    // itself and refuses to touch them, but they are inherited like all others.
    let default = [0u64; 4];
    for signal in 1..=64 {
        // SAFETY: sets no handler function; `default` is as large as the kernel reads. Signals that
        // cannot be changed are refused.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), 8usize) };
    }
    // SAFETY: sets no handler function.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Sends a signal to one process. Never to PID 1, to everybody or to the caller's own group.
pub fn send(pid: i32, signal: i32) -> io::Result<()> {
    if pid <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: touches no memory.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends a signal to a process group; the kernel does so in one step, so that no member can fork away.
pub fn send_to_group(group: i32, signal: i32) -> io::Result<()> {
    if group <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: touches no memory.
    if unsafe { libc::kill(-group, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
