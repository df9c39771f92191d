//! The end of a command: its exit, the rest of its output, and the reaping of everybody.

use std::{
    os::fd::AsFd,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use rustix::io::ioctl_fionread;

use super::{failure::failure, guest::Guest, output_pipes::QUIET, process::Exit, sending::enlist, spares::NO_STREAM};
use crate::sys::{
    reap::{self, Status, Used},
    report::Report,
    signals,
};

/// The longest that descendants can draw the end of a command's output out.
const DRAIN: Duration = Duration::from_secs(1);

impl Guest {
    pub fn on_exit(&mut self, stream: u32, raw_status: i32, used: Used, left: bool) {
        let now = Instant::now();
        let Some(process) = self.processes.get_mut(&stream) else { return };
        if process.exit.is_some() {
            return;
        }
        process.deadline = None;
        for pipe in process.pipes.iter_mut().flatten() {
            pipe.owed = pipe.taken + ioctl_fionread(pipe.fd.as_fd()).unwrap_or(0);
        }
        process.exit =
            Some(Exit { raw_status, used, left, at: now, quiet_until: now + QUIET, drain_until: now + DRAIN });
        self.drain_output(stream);
        self.finish_if_done(stream, now);
    }

    /// Tells the exit once the output has ended, or descendants that hold it open had their time.
    pub fn finish_if_done(&mut self, stream: u32, now: Instant) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        if process.finished.is_some() || process.ending.is_some() {
            return;
        }
        let Some(exit) = &mut process.exit else { return };
        let mut pipes = process.pipes.iter().flatten().peekable();
        if pipes.peek().is_some() {
            // What the command itself has written is waited for, however slow the daemon is.
            let owed = pipes.any(|pipe| pipe.taken < pipe.owed);
            if owed || (now < exit.quiet_until && now < exit.drain_until) {
                if owed && exit.quiet_until.min(exit.drain_until) <= now {
                    (exit.quiet_until, exit.drain_until) = (now + QUIET, now + DRAIN);
                }
                return;
            }
        }
        let Some(exit) = process.exit.take() else { return };
        let left_running = if exit.left { self.tree_of(stream).len() as u32 } else { 0 };
        let Some(process) = self.processes.get_mut(&stream) else { return };
        for pipe in process.pipes.iter().flatten() {
            if pipe.watched {
                let _ = self.poller.remove(&pipe.fd);
            }
        }
        process.finish(&exit, left_running);
        process.exit = Some(exit);
        enlist(self.link.as_mut(), process);
    }

    /// Takes every child that has ended.
    pub fn reap(&mut self) {
        while self.children.next().is_some() {}
        while let Some(child) = reap::wait_any(libc::WNOHANG | libc::WUNTRACED) {
            if Status::from_raw(child.raw_status) == Status::Stopped {
                // A stopped monitor would keep its command's exit to itself: PID 1 takes over.
                if self.monitors.contains_key(&child.pid) {
                    let _ = signals::send(child.pid, libc::SIGKILL);
                }
                continue;
            }
            match self.monitors.remove(&child.pid) {
                Some(stream) => self.on_monitor_gone(stream, &child),
                None => self.on_orphan_gone(&child),
            }
        }
    }

    fn on_monitor_gone(&mut self, stream: u32, monitor: &reap::Child) {
        if stream == NO_STREAM {
            return self.spares.retain(|spare| spare.pid != monitor.pid);
        }
        self.on_report(stream);
        let Some(process) = self.processes.get_mut(&stream) else { return };
        if process.monitor != Some(monitor.pid) {
            return;
        }
        process.monitor = None;
        process.report = None;
        let by_itself = matches!(Status::from_raw(monitor.raw_status), Status::Exited { .. });
        if process.starting.is_some() {
            match self.noted_pid(stream) {
                Some(pid) => self.take_report(stream, Report::Started { pid }),
                None => {
                    let killed = failure("INTERNAL", "the command's monitor was killed while it started");
                    return self.refuse(stream, killed);
                }
            }
        }
        let Some(process) = self.processes.get_mut(&stream) else { return };
        if process.exit.is_none() && !reap::is_child(process.pid) {
            // Both were killed, and the monitor took the command's status with it.
            self.on_exit(stream, libc::SIGKILL, Used::default(), true);
        } else if by_itself && process.exit.is_some() && process.ending.is_some() {
            // By itself it goes only when nothing is left of the tree.
            process.ending = None;
            self.finish_if_done(stream, Instant::now());
        }
    }

    /// The command of a monitor that has not told it.
    fn noted_pid(&self, stream: u32) -> Option<i32> {
        let starting = self.processes.get(&stream)?.starting.as_ref()?;
        Some(self.board.slot(starting.slot).load(Ordering::Relaxed)).filter(|pid| *pid > 0)
    }

    /// A child that is no monitor: its own monitor was killed, and PID 1 is its parent now.
    fn on_orphan_gone(&mut self, child: &reap::Child) {
        let starting: Vec<u32> =
            self.processes.values().filter(|process| process.pid == 0).map(|process| process.stream).collect();
        for stream in starting {
            self.on_report(stream);
            if self.noted_pid(stream) == Some(child.pid) {
                self.take_report(stream, Report::Started { pid: child.pid });
            }
        }
        let command = self.processes.values().find(|process| process.pid == child.pid && process.exit.is_none());
        if let Some(stream) = command.map(|process| process.stream) {
            self.on_exit(stream, child.raw_status, child.used, true);
        }
    }
}
