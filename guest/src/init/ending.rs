//! Signals, and the end of whole trees: asked to go, then killed until nothing is left.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{
    control::unknown,
    failure::{because, failure},
    guest::Guest,
    process::Ending,
    tree::{Entry, Snapshot},
};
use crate::{
    proto::link::{Failure, Signal},
    sys::signals,
};

/// Between two rounds of killing; doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(2);
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// What cannot be killed for so long is stuck in the kernel.
const GIVE_UP: Duration = Duration::from_secs(10);

impl Guest {
    pub fn signal(&mut self, signal: &Signal) -> Result<(), Failure> {
        let number = signal.signal as i32;
        if !(1..=64).contains(&number) {
            return Err(failure("INVALID_INPUT", "signal: 1 to 64"));
        }
        let Some(process) = self.processes.get_mut(&signal.stream) else { return Err(unknown()) };
        if process.starting.is_some() {
            return Err(failure("UNAVAILABLE", "the command is being started"));
        }
        let ended = failure("PROCESS_ENDED", "it has exited");
        if signal.tree && number == libc::SIGKILL {
            if process.finished.is_some() && process.monitor.is_none() {
                return Err(ended);
            }
            self.begin_killing(signal.stream, Instant::now());
            return Ok(());
        }
        if signal.tree {
            return if self.signal_tree(signal.stream, number) { Ok(()) } else { Err(ended) };
        }
        if process.exit.is_none() {
            let result = signals::send_to_group(process.pid, number);
            return result.map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::SRCH);
                because("PROCESS_ENDED", "its process group", errno)
            });
        }
        // The number may be somebody else's by now: only members that are of this tree.
        let group = process.pid;
        let members: Vec<Entry> = self.tree_of(signal.stream).into_iter().filter(|of| of.group == group).collect();
        for member in &members {
            let _ = signals::send(member.pid, number);
        }
        if members.is_empty() { Err(ended) } else { Ok(()) }
    }

    /// What is to be done about a process at this time.
    pub fn on_process_time(&mut self, stream: u32, now: Instant) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        match process.ending {
            None if process.deadline.is_some_and(|at| at <= now) => {
                process.deadline = None;
                process.timed_out = true;
                let kill_at = now + process.grace;
                process.ending = Some(Ending::Asked { kill_at });
                self.signal_tree(stream, libc::SIGTERM);
            }
            Some(Ending::Asked { kill_at }) if kill_at <= now => self.begin_killing(stream, now),
            Some(Ending::Killed { again_at, .. }) if again_at <= now => self.kill_tree(stream, now),
            _ => {}
        }
        self.finish_if_done(stream, now);
    }

    fn begin_killing(&mut self, stream: u32, now: Instant) {
        if let Some(process) = self.processes.get_mut(&stream) {
            process.ending = Some(Ending::Killed { again_at: now, wait: FIRST_WAIT, give_up: now + GIVE_UP });
            self.kill_tree(stream, now);
        }
    }

    /// One round. The tree is gone when there is nobody left to kill and the command's exit is known.
    fn kill_tree(&mut self, stream: u32, now: Instant) {
        let left = self.signal_tree(stream, libc::SIGKILL);
        let Some(process) = self.processes.get_mut(&stream) else { return };
        let Some(Ending::Killed { wait, give_up, .. }) = process.ending else { return };
        if (!left && process.exit.is_some()) || now >= give_up {
            process.ending = None;
        } else {
            let next = (wait * 2).min(LONGEST_WAIT);
            process.ending = Some(Ending::Killed { again_at: now + wait, wait: next, give_up });
        }
    }

    /// Sends a signal to everything of a tree, group by group: the kernel reaches a whole group in
    /// one step, so that a fork bomb cannot outrun it. False when nobody is left.
    fn signal_tree(&self, stream: u32, signal: i32) -> bool {
        let tree = self.tree_of(stream);
        // Groups never span sessions, and the command began its own: no group is shared with others.
        let groups: HashSet<i32> = tree.iter().map(|entry| entry.group).collect();
        for group in groups {
            let _ = signals::send_to_group(group, signal);
        }
        !tree.is_empty()
    }

    /// Everything alive of a command's tree, by what /proc says now.
    pub fn tree_of(&self, stream: u32) -> Vec<Entry> {
        let Some(process) = self.processes.get(&stream) else { return Vec::new() };
        let snapshot = Snapshot::take();
        let mut tree = match process.monitor {
            Some(monitor) => snapshot.below(&[monitor]),
            None => self.strays(&snapshot, stream),
        };
        tree.retain(|entry| !entry.zombie);
        tree
    }

    /// Children of PID 1 that are no monitors, with all below them: what killed monitors left behind.
    /// Nobody can say any more whose they were, so they count for each command that lost its monitor;
    /// only the other commands themselves are told apart.
    fn strays(&self, snapshot: &Snapshot, of: u32) -> Vec<Entry> {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        let others: HashSet<i32> =
            self.processes.values().filter(|process| process.stream != of).map(|process| process.pid).collect();
        let is_stray = |entry: &&Entry| {
            entry.parent == me && !self.monitors.contains_key(&entry.pid) && !others.contains(&entry.pid)
        };
        let roots: Vec<Entry> = snapshot.entries.iter().filter(is_stray).copied().collect();
        let pids: Vec<i32> = roots.iter().map(|entry| entry.pid).collect();
        let mut strays = snapshot.below(&pids);
        strays.extend(roots);
        strays
    }
}
