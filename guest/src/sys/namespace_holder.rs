//! A process that does nothing but be in a user namespace of its own, so that the namespace can be
//! given a mapping and taken by descriptor. The kernel has no way to make one without a process.

use std::ffi::c_void;

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

use super::check;

/// Is told to end with the value, so take the namespace before; somebody has to wait for it, by and by.
pub struct NamespaceHolder {
    pid: Pid,
}

impl NamespaceHolder {
    pub fn new() -> Result<Self, Errno> {
        // Never freed: nobody knows when the child has left it. It is for processes that soon end.
        let stack = Box::leak(Box::new([0u128; 256]));
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        // SAFETY: the child shares memory but has a stack of its own; it only calls pause, so it changes
        // nothing that this process sees.
        let pid = unsafe {
            libc::clone(wait_for_ever, top, libc::CLONE_NEWUSER | libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut())
        };
        let pid = Pid::from_raw(check(pid.into())? as i32).ok_or(Errno::SRCH)?;
        Ok(Self { pid })
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for NamespaceHolder {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

extern "C" fn wait_for_ever(_: *mut c_void) -> libc::c_int {
    loop {
        // SAFETY: pause takes nothing and returns only after a signal handler ran, of which there are none.
        unsafe { libc::pause() };
    }
}
