//! For tests: a child that is PID 1 of its own process namespace, as the guest is in a sandbox.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::geteuid,
    thread::UnshareFlags,
};

use super::own_user_namespace;

/// Ends with everything in it when it is dropped.
pub struct Inmate {
    pid: i32,
}

impl Inmate {
    /// Runs `body` with one descriptor besides the standard ones; its result is the exit code.
    pub fn start(fd: BorrowedFd<'_>, body: fn(OwnedFd) -> u8) -> io::Result<Self> {
        // SAFETY: the child goes on with one thread. It allocates, which glibc makes safe after fork, and
        // uses nothing of the test's that another thread could have left locked.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let code = enclose(fd.as_raw_fd(), body).unwrap_or(99);
                // SAFETY: ends the child without running the test harness's own clean-up.
                unsafe { libc::_exit(code.into()) }
            }
            pid => Ok(Self { pid }),
        }
    }

    /// Waits for the end and gives the exit code, or -1 after a signal.
    pub fn wait(mut self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` lives through the call; the child is ours and not waited for elsewhere.
        unsafe { libc::waitpid(self.pid, &mut status, 0) };
        self.pid = 0;
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
    }
}

impl Drop for Inmate {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: the child is ours and not yet waited for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, ptr::null_mut(), 0);
            }
        }
    }
}

fn enclose(fd: i32, body: fn(OwnedFd) -> u8) -> io::Result<u8> {
    // SAFETY: this process has one thread and nobody owns descriptors above 2 but `fd`, which moves to 3.
    let door = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let door = libc::fcntl(fd, libc::F_DUPFD, 200);
        libc::dup2(door, 3);
        libc::syscall(libc::SYS_close_range, 4u32, u32::MAX, 0u32);
        OwnedFd::from_raw_fd(3)
    };
    if !geteuid().is_root() {
        own_user_namespace::enter()?;
    }
    // SAFETY: one thread; the descriptor table stays as it is.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID | UnshareFlags::NEWNS) }?;
    // SAFETY: as in `start`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: takes numbers only.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            mount("proc", "/proc", "proc", MountFlags::empty(), None)?;
            let code = body(door);
            // SAFETY: as in `start`.
            unsafe { libc::_exit(code.into()) }
        }
        inner => {
            let mut status = 0;
            // SAFETY: `status` lives through the call.
            unsafe { libc::waitpid(inner, &mut status, 0) };
            Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) as u8 } else { 98 })
        }
    }
}
