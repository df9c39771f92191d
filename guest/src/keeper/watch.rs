//! Sandboxes that are alive: each is held by descriptors of its outer process and of its PID 1.

use std::{
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid},
};

use super::process;
use crate::proto::keeper::Ended;

/// How long an outer process may take to end by itself once its PID 1 is gone.
const OUTER_ENDS_WITHIN: Duration = Duration::from_secs(2);

pub struct Watched {
    pub sandbox: String,
    outer: Rc<OwnedFd>,
    pid: Pid,
    /// Ours to wait for; an adopted one is the host's init's.
    is_child: bool,
    inits: Vec<OwnedFd>,
    /// Requests to be answered when it is gone.
    kills: Vec<u32>,
    outer_deadline: Option<Instant>,
}

impl Watched {
    pub fn launched(sandbox: String, pid: Pid) -> rustix::io::Result<Self> {
        Self::new(sandbox, pid, true)
    }

    /// A process that an earlier keeper started, if it is still that one. If it is gone, what it may
    /// have left behind goes too.
    pub fn adopted(sandbox: String, pid: i32, start_time: u64) -> Option<Self> {
        let watched = Self::new(sandbox, Pid::from_raw(pid)?, false);
        // Asked after it was opened: the number cannot have gone to another process in between.
        match process::stat(pid) {
            Some(stat) if stat.start_time != start_time => None,
            Some(stat) if stat.state != b'Z' && stat.state != b'X' => watched.ok(),
            _ => {
                end_all(&process::inits_of_session(pid));
                None
            }
        }
    }

    fn new(sandbox: String, pid: Pid, is_child: bool) -> rustix::io::Result<Self> {
        let outer = Rc::new(pidfd_open(pid, PidfdFlags::empty())?);
        Ok(Self { sandbox, outer, pid, is_child, inits: Vec::new(), kills: Vec::new(), outer_deadline: None })
    }

    pub fn outer(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.outer)
    }

    pub fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Ends the sandbox: with its PID 1 goes everything in its process namespace, and then the outer
    /// process by itself, which has waited for it.
    pub fn kill(&mut self, request: u32) {
        self.kills.push(request);
        self.inits = process::children(self.number());
        if self.inits.is_empty() {
            // It may be about to make its PID 1, which must not be left behind.
            self.stop();
            self.inits = process::children(self.number());
            self.kill_outer();
        } else {
            self.outer_deadline.get_or_insert(Instant::now() + OUTER_ENDS_WITHIN);
        }
        signal_all(&self.inits);
    }

    /// When `kill_outer` is due, if it is.
    pub fn outer_deadline(&self) -> Option<Instant> {
        self.outer_deadline
    }

    pub fn kill_outer(&mut self) {
        self.outer_deadline = None;
        let _ = pidfd_send_signal(&*self.outer, Signal::KILL);
    }

    /// To be called when the outer process is gone: returns when the whole sandbox is. An outer process
    /// that did not come to waiting for its PID 1 has left it.
    pub fn end(mut self) -> (Ended, Vec<u32>) {
        if self.inits.is_empty() {
            self.inits = process::inits_of_session(self.number());
        }
        end_all(&self.inits);
        let (code, signal) = self.status();
        (Ended { sandbox: self.sandbox, code, signal }, self.kills)
    }

    /// How it ended; -1 without a signal where nobody told us.
    fn status(&self) -> (i32, u32) {
        if !self.is_child {
            return (-1, 0);
        }
        match waitpid(Some(self.pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => (code, 0),
                (None, signal) => (-1, signal.unwrap_or(0) as u32),
            },
            _ => (-1, 0),
        }
    }

    fn stop(&self) {
        let _ = pidfd_send_signal(&*self.outer, Signal::STOP);
        for _ in 0..100 {
            match process::stat(self.number()).map(|stat| stat.state) {
                None | Some(b'T' | b'Z' | b'X') => return,
                _ => thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}

fn signal_all(processes: &[OwnedFd]) {
    for process in processes {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// A PID 1 is gone only after everything in its namespace, which takes a moment; a process stuck in
/// the kernel is not waited for longer than the bound.
fn end_all(processes: &[OwnedFd]) {
    signal_all(processes);
    for process in processes {
        let bound = Timespec { tv_sec: 2, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], Some(&bound));
    }
}
