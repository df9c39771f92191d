//! Waiting for children, with what they used.

use std::mem;

/// What a process used, its waited-for children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub user_us: u64,
    pub system_us: u64,
    pub max_rss_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Exited { code: i32 },
    Killed { signal: i32 },
    Stopped,
}

impl Status {
    pub fn from_raw(raw: i32) -> Self {
        if libc::WIFEXITED(raw) {
            Self::Exited { code: libc::WEXITSTATUS(raw) }
        } else if libc::WIFSIGNALED(raw) {
            Self::Killed { signal: libc::WTERMSIG(raw) }
        } else {
            Self::Stopped
        }
    }
}

/// A child's raw status, to be read by `Status::from_raw`.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    pub pid: i32,
    pub raw_status: i32,
    pub used: Used,
}

/// Takes one child that has ended (or, with `WUNTRACED`, stopped). `None`: none right now, or none at all.
/// Async-signal-safe.
pub fn wait_any(options: i32) -> Option<Child> {
    let mut raw_status = 0;
    // SAFETY: rusage is plain numbers, for which zero is valid; both pointers live through the call.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(-1, &mut raw_status, options, &mut usage), usage)
    };
    if pid <= 0 {
        return None;
    }
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let used = Used {
        user_us: micros(usage.ru_utime),
        system_us: micros(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    };
    Some(Child { pid, raw_status, used })
}

/// Whether this process has any child left, ended or not. Async-signal-safe.
pub fn has_children() -> bool {
    // SAFETY: siginfo is plain data, for which zero is valid; WNOWAIT leaves the child as it is.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Whether a process is this one's child, ended or not, and not yet waited for.
pub fn is_child(pid: i32) -> bool {
    // SAFETY: as above.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        pid > 0 && libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) == 0
    }
}
