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

/// Takes every signal that somebody may send, and does nothing about it; exec puts the default actions back. Async-signal-safe.
pub fn swallow() {
    extern "C" fn nothing(_: libc::c_int) {}
    // What the processor raises would be raised again and again.
    let own = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
    for signal in (1..=64).filter(|signal| !own.contains(signal)) {
        // SAFETY: the action is plain numbers, for which zero is valid, and a function that touches nothing. Signals that cannot
        // be taken are refused.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
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
