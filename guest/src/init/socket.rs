//! One TCP connection inside and the stream that carries it. Nothing is read from it that the daemon has not asked
//! for by its window; what the program does not take of the other direction waits here, at most a window of it.

use std::{collections::VecDeque, io::IoSlice, os::fd::OwnedFd, time::Duration};

use rustix::{
    io::{Errno, Result, read, write, writev},
    net::{Shutdown, shutdown, sockopt},
};

use crate::{
    frame::Broken,
    rules::{LINK_CONNECTION_WINDOW_BYTES, LINK_WINDOW_BYTES},
};

/// What the daemon may send ahead, and what it may be sent ahead.
const WINDOW: u64 = LINK_WINDOW_BYTES as u64;
const OWN_WINDOW: u64 = LINK_CONNECTION_WINDOW_BYTES as u64;
/// Taking so much is told; a window is never full without it.
const NEWS: u64 = WINDOW / 4;

/// A connection to a port inside that is not open yet.
#[derive(Clone, Copy)]
pub struct Dialling {
    /// The control message that waits for the answer.
    pub call: u32,
    pub port: u16,
    /// The second attempt: some programs listen on `::1` alone.
    pub six: bool,
}

pub struct Socket {
    pub fd: OwnedFd,
    pub dialling: Option<Dialling>,
    pub enlisted: bool,
    /// There may be something to read: the poller tells changes only.
    readable: bool,
    /// The program has said all it will, and whether the daemon was told.
    ended: bool,
    end_told: bool,
    /// The daemon has said all it will, and whether the program was told.
    host_ended: bool,
    shut: bool,
    waiting: VecDeque<u8>,
    /// Positions from the daemon: received, taken by the program, told as taken.
    received: u64,
    taken: u64,
    told: u64,
    /// Positions to the daemon: sent, acknowledged.
    sent: u64,
    acknowledged: u64,
}

/// What a turn on the link gives.
pub enum Given {
    Data(usize),
    End,
    Nothing,
}

impl Socket {
    pub fn new(fd: OwnedFd, dialling: Option<Dialling>) -> Self {
        // What is written is meant to arrive; the link has put together what belongs together.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        Self {
            fd,
            dialling,
            enlisted: false,
            readable: true,
            ended: false,
            end_told: false,
            host_ended: false,
            shut: false,
            waiting: VecDeque::new(),
            received: 0,
            taken: 0,
            told: 0,
            sent: 0,
            acknowledged: 0,
        }
    }

    /// Bytes that the program has not taken.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn became_readable(&mut self) {
        self.readable = true;
    }

    pub fn has_something_to_send(&self) -> bool {
        let open = self.dialling.is_none();
        open && !self.end_told && (self.ended || self.readable && self.room() > 0)
    }

    /// Both sides have ended and know it.
    pub fn is_over(&self) -> bool {
        self.end_told && self.shut
    }

    fn room(&self) -> usize {
        (OWN_WINDOW - (self.sent - self.acknowledged)) as usize
    }

    /// Reads what the daemon may be sent now.
    pub fn give(&mut self, into: &mut [u8]) -> Result<Given> {
        if self.readable && !self.ended {
            let length = into.len().min(self.room());
            if length == 0 {
                return Ok(Given::Nothing);
            }
            match read(&self.fd, &mut into[..length]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.sent += count as u64;
                    return Ok(Given::Data(count));
                }
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        if self.ended && !self.end_told {
            self.end_told = true;
            return Ok(Given::End);
        }
        Ok(Given::Nothing)
    }

    pub fn acknowledge(&mut self, position: u64) -> std::result::Result<(), Broken> {
        if position > self.sent {
            return Err(Broken("ACK beyond what was sent"));
        }
        self.acknowledged = self.acknowledged.max(position);
        Ok(())
    }

    /// DATA from the daemon. An error of the socket's own is its end.
    pub fn accept(&mut self, bytes: &[u8]) -> std::result::Result<Result<()>, Broken> {
        self.received += bytes.len() as u64;
        if self.received - self.told > WINDOW {
            return Err(Broken("DATA beyond the window"));
        }
        if self.host_ended {
            return Err(Broken("DATA after END"));
        }
        let mut rest = bytes;
        if self.waiting.is_empty() && self.dialling.is_none() {
            match write(&self.fd, rest) {
                Ok(count) => {
                    self.taken += count as u64;
                    rest = &rest[count..];
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Ok(Err(errno)),
            }
        }
        self.waiting.extend(rest);
        Ok(Ok(()))
    }

    /// END from the daemon.
    pub fn end(&mut self) -> Result<()> {
        self.host_ended = true;
        self.flush()
    }

    /// Writes what the program takes now.
    pub fn flush(&mut self) -> Result<()> {
        if self.dialling.is_some() {
            return Ok(());
        }
        while !self.waiting.is_empty() {
            let (first, second) = self.waiting.as_slices();
            match writev(&self.fd, &[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(count) => {
                    self.taken += count as u64;
                    self.waiting.drain(..count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        // A burst is not remembered by its size.
        if self.waiting.capacity() > 0 {
            self.waiting = VecDeque::new();
        }
        if self.host_ended && !self.shut {
            self.shut = true;
            let _ = shutdown(&self.fd, Shutdown::Write);
        }
        Ok(())
    }

    /// The position to acknowledge, when there is enough news.
    pub fn news(&mut self) -> Option<u64> {
        (self.taken - self.told >= NEWS).then(|| {
            self.told = self.taken;
            self.taken
        })
    }
}

/// Closes a connection so that its program gets an error and not an end.
pub fn refuse(fd: OwnedFd) {
    let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
}
