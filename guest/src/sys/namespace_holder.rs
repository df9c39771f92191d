//! A process that does nothing but be in a user namespace of its own, so that the namespace can be
//! given a mapping and taken by descriptor. The kernel has no way to make one without a process.

use std::ffi::c_void;

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};

use super::check;

/// Ends with the value; take the namespace before.
pub struct NamespaceHolder {
    pid: Pid,
    _stack: Box<[u128; 256]>,
}

impl NamespaceHolder {
    pub fn new() -> Result<Self, Errno> {
        let mut stack = Box::new([0u128; 256]);
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        // SAFETY: the child shares memory but has a stack of its own, which lives until it was waited for;
        // it only calls pause, so it changes nothing that this process sees.
        let pid = unsafe {
            libc::clone(wait_for_ever, top, libc::CLONE_NEWUSER | libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut())
        };
        let pid = Pid::from_raw(check(pid.into())? as i32).ok_or(Errno::SRCH)?;
        Ok(Self { pid, _stack: stack })
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for NamespaceHolder {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

extern "C" fn wait_for_ever(_: *mut c_void) -> libc::c_int {
    loop {
        // SAFETY: pause takes nothing and returns only after a signal handler ran, of which there are none.
        unsafe { libc::pause() };
    }
}
