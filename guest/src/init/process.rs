//! A command and everything the guest keeps about it.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::{command::Command, input::Input, output::Output, usage};
use crate::{
    frame::Tag,
    proto::link::{Exited, ProcessState},
    sys::reap::{Status, Used},
};

/// Where output comes from.
pub struct Pipe {
    pub fd: OwnedFd,
    pub tag: Tag,
    /// The poller looks at it.
    pub watched: bool,
    /// Bytes taken from it, and how many the command itself has written: those are never given up.
    pub taken: u64,
    pub owed: u64,
    /// Reads that gave as much as a pipe usually holds.
    pub full_reads: u32,
}

/// Nobody knows yet whether the command can be executed.
pub struct Starting {
    /// The control message to answer; 0 when nobody waits for it.
    pub call: u32,
    pub command: Command,
    /// Where the command's pid is noted.
    pub slot: u32,
}

/// The command has ended; its output may not have.
pub struct Exit {
    pub raw_status: i32,
    pub used: Used,
    /// Descendants were alive then.
    pub left: bool,
    pub at: Instant,
    /// When to give up pipes that descendants hold open: after a while of silence, and at the latest.
    pub quiet_until: Instant,
    pub drain_until: Instant,
}

/// The tree is being ended.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// It was asked to; it is made to at this time.
    Asked { kill_at: Instant },
    /// Killed again and again until nothing is left of it, or for so long.
    Killed { again_at: Instant, wait: Duration, give_up: Instant },
}

pub struct Process {
    pub stream: u32,
    pub starting: Option<Box<Starting>>,
    /// The command; 0 until it is known.
    pub pid: i32,
    /// None when it is gone, also when somebody killed it.
    pub monitor: Option<i32>,
    pub report: Option<OwnedFd>,
    pub terminal: bool,
    pub input: Input,
    /// Standard output or the terminal, and standard error.
    pub pipes: [Option<Pipe>; 2],
    pub output: Output,
    pub started: Instant,
    pub deadline: Option<Instant>,
    pub grace: Duration,
    pub timed_out: bool,
    pub ending: Option<Ending>,
    pub exit: Option<Exit>,
    pub finished: Option<Exited>,
    /// `finished` was sent on this connection.
    pub told: bool,
    /// It has a turn coming on the link.
    pub enlisted: bool,
}

impl Process {
    pub fn has_something_to_send(&self) -> bool {
        self.starting.is_none() && (!self.output.all_sent() || (self.finished.is_some() && !self.told))
    }

    pub fn exit_to_tell(&self) -> Option<Exited> {
        self.finished.filter(|_| !self.told && self.output.all_sent())
    }

    pub fn state(&self) -> ProcessState {
        ProcessState {
            stream: self.stream,
            exited: self.finished,
            first_position: self.output.acknowledged(),
            stdin_position: self.input.received(),
            pid: self.pid as u32,
        }
    }

    /// The end of its story, once nothing more can be added to it.
    pub fn finish(&mut self, exit: &Exit, left_running: u32) {
        let (code, signal) = match Status::from_raw(exit.raw_status) {
            Status::Exited { code } => (code, 0),
            Status::Killed { signal } => (-1, signal as u32),
            Status::Stopped => (-1, 0),
        };
        self.pipes = [None, None];
        self.input.close();
        self.output.release_if_done();
        self.finished = Some(Exited {
            stream: self.stream,
            code,
            signal,
            timed_out: self.timed_out,
            user_us: exit.used.user_us,
            system_us: exit.used.system_us,
            max_rss_bytes: exit.used.max_rss_bytes,
            duration_us: exit.at.duration_since(self.started).as_micros() as u64,
            position: self.output.end(),
            left_running,
            kernel_oom_kills: if code == 0 { 0 } else { usage::kernel_oom_kills() },
        });
    }

    /// When something is to be done about it though nothing happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        match (self.ending, &self.exit) {
            (Some(Ending::Asked { kill_at }), _) => Some(kill_at),
            (Some(Ending::Killed { again_at, .. }), _) => Some(again_at),
            (None, None) => self.deadline,
            (None, Some(exit)) if self.finished.is_none() => Some(exit.quiet_until.min(exit.drain_until)),
            (None, Some(_)) => None,
        }
    }
}
