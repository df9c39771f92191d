//! Becoming another program, with its descriptors, signals and environment exactly as meant.

use std::{
    ffi::CString,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use rustix::io::Errno;

use super::check;

/// Makes a descriptor also known as `to`, open across exec, whatever `to` was before.
pub fn place_descriptor(from: &OwnedFd, to: RawFd) -> Result<(), Errno> {
    // SAFETY: dup2 is memory-safe; the caller owns the numbering of this child's descriptors.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into()).map(drop)
}

/// The same, but it closes itself at exec.
pub fn place_closing(from: &OwnedFd, to: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: as above; the returned value is the new number's only owner.
    let placed = check(unsafe { libc::dup3(from.as_raw_fd(), to, libc::O_CLOEXEC) }.into())?;
    // SAFETY: dup3 has just made it.
    Ok(unsafe { OwnedFd::from_raw_fd(placed as RawFd) })
}

/// Signals as a fresh process has them: nothing ignored, nothing blocked.
pub fn reset_signals() {
    for signal in 1..=31 {
        // SAFETY: SIG_DFL is a valid disposition; refusals (SIGKILL, SIGSTOP) change nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is read, and the old one is not wanted.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

/// Replaces this process. `program` is a path, or a name that is looked up in the usual places.
/// Returns only when it failed.
pub fn exec(program: &CString, argv: &[CString], env: &[CString]) -> Errno {
    let arguments = pointers(argv);
    let environment = pointers(env);
    // SAFETY: both arrays end in a null pointer and point to strings that live until the call returns.
    let failed = unsafe { libc::execvpe(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    check(failed.into()).err().unwrap_or(Errno::NOEXEC)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}
