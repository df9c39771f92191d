//! Signals as something to poll, and ending the way a signal would have ended us.

use std::{
    io, mem,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// Blocked signals, read from a descriptor.
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks these signals for the calling thread and delivers them here instead. To be called while
    /// there is a single thread.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: `set` is an initialised signal set; no old mask is asked for.
        let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut()) };
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        // SAFETY: `set` is an initialised signal set; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that has come, if any.
    pub fn next(&self) -> Option<i32> {
        let mut info = [0_u8; mem::size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut info) {
            Ok(length) if length == info.len() => {
                // The signal's number is the first field.
                Some(i32::from_ne_bytes([info[0], info[1], info[2], info[3]]))
            }
            _ => None,
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ends this process by the signal's default action, so that its parent sees what it expects.
pub fn die_by(signal: i32) -> ! {
    let set = set_of(&[signal]);
    // SAFETY: setting a default action and unblocking touch no memory of ours; `set` is initialised.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        libc::raise(signal);
    }
    // Only a signal whose default is not to end the process gets here.
    std::process::exit(128 + signal)
}

/// Runs `work` with one signal blocked, as the kernel demands of a background process that sets a terminal's mode.
pub fn with_blocked<T>(signal: i32, work: impl FnOnce() -> T) -> T {
    let set = set_of(&[signal]);
    let mut before = set_of(&[]);
    // SAFETY: both sets are initialised and live on this stack.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) };
    let result = work();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
    result
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the whole set before anything reads it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}
