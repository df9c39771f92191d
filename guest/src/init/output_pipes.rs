//! Taking output from processes: only while the window has room, so that a process that writes
//! faster than the daemon stores waits, and nothing is lost.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::pipe::fcntl_setpipe_size;

use super::{
    events::{EventFlags, Poller, Token},
    guest::Guest,
    output::Read,
    process::{Pipe, Process},
    sending::enlist,
};
use crate::rules::LINK_WINDOW_BYTES;

/// What a pipe holds unless it is told otherwise.
const USUAL_PIPE_BYTES: usize = 64 * 1024;
/// Silence after the command's end that means that descendants have nothing more to say.
pub const QUIET: Duration = Duration::from_millis(100);

fn token(stream: u32, index: usize) -> Token {
    if index == 0 { Token::Stdout(stream) } else { Token::Stderr(stream) }
}

/// Looks at pipes again once there is room for what they have.
pub fn rewatch(poller: &Poller, process: &mut Process) {
    if process.starting.is_some() {
        return;
    }
    for (index, slot) in process.pipes.iter_mut().enumerate() {
        if let Some(pipe) = slot {
            if !pipe.watched && process.output.is_worth_reading(pipe.tag) {
                pipe.watched = poller.add(&pipe.fd, token(process.stream, index), EventFlags::IN).is_ok();
                if !pipe.watched {
                    *slot = None;
                }
            }
        }
    }
}

impl Guest {
    pub fn on_output(&mut self, stream: u32, index: usize, flags: EventFlags) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        // A pipe that has no writer and nothing to read: nothing can come any more. A terminal may be opened again.
        let is_over = flags == EventFlags::HUP && !process.terminal;
        let ended = if is_over {
            process.pipes[index].take().is_some()
        } else {
            take(&self.poller, process, index) == Some(Read::End)
        };
        enlist(self.link.as_mut(), process);
        if ended {
            self.finish_if_done(stream, Instant::now());
        }
    }

    /// Takes all there is at once.
    pub fn drain_output(&mut self, stream: u32) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        for index in 0..2 {
            while let Some(Read::Bytes(_)) = take(&self.poller, process, index) {}
        }
        enlist(self.link.as_mut(), process);
    }
}

fn take(poller: &Poller, process: &mut Process, index: usize) -> Option<Read> {
    let pipe = process.pipes[index].as_mut()?;
    let read = process.output.read(pipe.fd.as_fd(), pipe.tag);
    match read {
        Read::Bytes(count) => {
            pipe.taken += count as u64;
            if let Some(exit) = &mut process.exit {
                exit.quiet_until = Instant::now() + QUIET;
            }
            grow_if_flooded(pipe, count);
        }
        Read::Empty => {}
        Read::Full => {
            // Told to look away: a full pipe would be told over and over.
            if pipe.watched {
                let _ = poller.remove(&pipe.fd);
                pipe.watched = false;
            }
        }
        Read::End => {
            // It has a second descriptor, so that closing alone would not make the poller forget it.
            if process.terminal {
                let _ = poller.remove(&pipe.fd);
            }
            process.pipes[index] = None;
        }
    }
    Some(read)
}

/// A process that keeps filling its pipe gets a larger one: fewer wake-ups on both sides.
fn grow_if_flooded(pipe: &mut Pipe, count: usize) {
    if count >= USUAL_PIPE_BYTES {
        pipe.full_reads += 1;
        if pipe.full_reads == 2 {
            // The user may have used up what the kernel allows; then it stays as it is.
            let _ = fcntl_setpipe_size(&pipe.fd, LINK_WINDOW_BYTES);
        }
    }
}
