//! A process's standard input: what the daemon sends goes straight into the pipe; what the pipe
//! does not take waits here, at most one window of it.

use std::{collections::VecDeque, io::IoSlice, os::fd::OwnedFd};

use rustix::{
    io::{Errno, write, writev},
    pipe::fcntl_setpipe_size,
    termios::{LocalModes, SpecialCodeIndex, tcgetattr},
};

use super::events::{EventFlags, Poller, Token};
use crate::{frame::Broken, rules::LINK_WINDOW_BYTES};

#[derive(Default)]
pub struct Input {
    fd: Option<OwnedFd>,
    terminal: bool,
    waiting: VecDeque<u8>,
    ended: bool,
    grown: bool,
    /// The poller looks at it.
    watched: bool,
    /// Positions: received from the daemon, taken by the pipe, told as taken.
    received: u64,
    taken: u64,
    acknowledged: u64,
}

impl Input {
    pub fn pipe(fd: OwnedFd) -> Self {
        Self { fd: Some(fd), ..Self::default() }
    }

    pub fn terminal(fd: OwnedFd) -> Self {
        Self { fd: Some(fd), terminal: true, ..Self::default() }
    }

    /// Whether something waits for the pipe to take it.
    pub fn is_waiting(&self) -> bool {
        self.fd.is_some() && !self.waiting.is_empty()
    }

    /// Has the poller look at the pipe exactly while something waits for it.
    pub fn watch(&mut self, poller: &Poller, stream: u32) {
        let wanted = self.is_waiting();
        let Some(fd) = &self.fd else {
            self.watched = false;
            return;
        };
        if wanted && !self.watched {
            match poller.add(fd, Token::Stdin(stream), EventFlags::OUT) {
                Ok(()) => self.watched = true,
                Err(_) => self.close(),
            }
        } else if !wanted && self.watched {
            let _ = poller.remove(fd);
            self.watched = false;
        }
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    /// The position to acknowledge, if there is news.
    pub fn news(&mut self) -> Option<u64> {
        (self.taken > self.acknowledged).then(|| {
            self.acknowledged = self.taken;
            self.taken
        })
    }

    /// DATA from the daemon. What a process that has closed its input would not read is taken and dropped.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let outstanding = self.received + bytes.len() as u64 - self.acknowledged;
        if outstanding > LINK_WINDOW_BYTES as u64 {
            return Err(Broken("DATA beyond the window"));
        }
        self.received += bytes.len() as u64;
        if self.ended || self.fd.is_none() {
            self.drop_waiting();
            return Ok(());
        }
        let mut rest = bytes;
        if self.waiting.is_empty() {
            let Some(fd) = &self.fd else { return Ok(()) };
            match write(fd, rest) {
                Ok(count) => {
                    self.taken += count as u64;
                    rest = &rest[count..];
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => {
                    self.close();
                    return Ok(());
                }
            }
        }
        self.waiting.extend(rest);
        if !self.waiting.is_empty() && !self.grown && !self.terminal {
            self.grown = true;
            if let Some(fd) = &self.fd {
                // Fewer wake-ups for large inputs; the default will do where the user has no more.
                let _ = fcntl_setpipe_size(fd, LINK_WINDOW_BYTES);
            }
        }
        Ok(())
    }

    /// END from the daemon.
    pub fn end(&mut self) {
        self.ended = true;
        self.flush();
    }

    /// Writes what the pipe takes now.
    pub fn flush(&mut self) {
        while let (Some(fd), false) = (&self.fd, self.waiting.is_empty()) {
            let (first, second) = self.waiting.as_slices();
            match writev(fd, &[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(count) => {
                    self.taken += count as u64;
                    self.waiting.drain(..count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.close(),
            }
        }
        if self.ended && self.waiting.is_empty() {
            self.finish();
        }
    }

    /// Nobody will read any more.
    pub fn close(&mut self) {
        self.fd = None;
        self.drop_waiting();
    }

    /// A new connection: the daemon goes on from `received`, with a whole window. So that what waits
    /// here stays bounded however often that happens, no more than a window is kept.
    pub fn resume(&mut self) {
        self.waiting.truncate(LINK_WINDOW_BYTES);
        self.received = self.taken + self.waiting.len() as u64;
        self.acknowledged = self.received;
    }

    fn drop_waiting(&mut self) {
        self.waiting = VecDeque::new();
        self.taken = self.received;
    }

    /// A pipe is closed. A terminal stays open for its output: its reader is told by the character
    /// that means the end, as a person would.
    fn finish(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if !self.terminal {
            return;
        }
        if let Ok(modes) = tcgetattr(&fd) {
            if modes.local_modes.contains(LocalModes::ICANON) {
                let _ = write(&fd, &[modes.special_codes[SpecialCodeIndex::VEOF]]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::{
        io::read,
        pipe::{PipeFlags, pipe_with},
    };

    use super::*;

    #[test]
    fn what_the_pipe_does_not_take_waits_up_to_a_window() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::pipe(writer);
        input.accept(&[7; 100_000]).unwrap();
        assert!(input.is_waiting());
        assert_eq!(input.news(), Some(65_536));
        assert_eq!(input.news(), None);
        assert!(input.accept(&vec![7; LINK_WINDOW_BYTES]).is_err());
        input.end();
        let mut total = 0;
        let mut buffer = [0; 65_536];
        loop {
            match read(&reader, &mut buffer) {
                Ok(0) => break,
                Ok(count) => total += count,
                Err(_) => input.flush(),
            }
        }
        assert_eq!(total, 100_000);
        assert_eq!(input.news(), Some(100_000));
    }

    #[test]
    fn a_closed_reader_takes_everything() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        drop(reader);
        let mut input = Input::pipe(writer);
        for turn in 1..=5u64 {
            input.accept(&vec![0; LINK_WINDOW_BYTES]).unwrap();
            assert_eq!(input.news(), Some(turn * LINK_WINDOW_BYTES as u64));
        }
    }

    #[test]
    fn resuming_keeps_what_waits_and_never_more_than_a_window() {
        let (_reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = Input::pipe(writer);
        for _ in 0..4 {
            input.accept(&vec![1; LINK_WINDOW_BYTES]).unwrap();
            input.resume();
            assert_eq!(input.news(), None);
            assert!(input.waiting.len() <= 2 * LINK_WINDOW_BYTES);
        }
        assert_eq!(input.received(), input.taken + LINK_WINDOW_BYTES as u64);
    }
}
