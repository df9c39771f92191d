//! The connection to the daemon: what has arrived and what is to be sent.

use std::{
    collections::VecDeque,
    io::IoSlice,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::io::{Errno, Result, writev};

use super::{calls::CallNumber, events::EventFlags};
use crate::frame::{Decoder, HEADER_BYTES, Header, Kind, Tag};

/// Payloads up to this are copied behind their headers, so that many frames go in one write.
pub const SMALL_PAYLOAD: usize = 16 * 1024;
/// The most bytes of one stream before the next has its turn.
pub const TURN_BYTES: usize = 256 * 1024;
/// Streams wait while so much is to be written already.
const WIRE_BYTES: usize = 64 * 1024;
/// Answers that the daemon does not read stop us from reading its calls.
const BACKLOG_BYTES: usize = 1024 * 1024;

/// Who has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Process(u32),
    Call(CallNumber),
    Socket(u32),
}

/// The rest of a payload whose header is on the wire already.
pub enum Rest {
    None,
    /// Bytes of a process's output, which stay in its ring.
    Output {
        stream: u32,
        from: u64,
        to: u64,
    },
    Owned {
        bytes: Vec<u8>,
        at: usize,
    },
}

pub struct Link {
    pub number: u32,
    pub fd: OwnedFd,
    pub decoder: Decoder,
    /// What the poller is asked to tell.
    pub interest: EventFlags,
    /// Answers and acknowledgements, ahead of all streams.
    pub control: Vec<u8>,
    /// Streams with something to send, in turn.
    pub ready: VecDeque<Turn>,
    wire: Vec<u8>,
    written: usize,
    /// Follows `wire`.
    pub rest: Rest,
}

impl Link {
    pub fn new(number: u32, fd: OwnedFd, decoder: Decoder) -> Self {
        Self {
            number,
            fd,
            decoder,
            interest: EventFlags::IN,
            control: Vec::new(),
            ready: VecDeque::new(),
            wire: Vec::new(),
            written: 0,
            rest: Rest::None,
        }
    }

    pub fn is_backlogged(&self) -> bool {
        self.control.len() > BACKLOG_BYTES
    }

    pub fn has_something_to_write(&self) -> bool {
        self.written < self.wire.len() || !matches!(self.rest, Rest::None) || !self.control.is_empty()
    }

    /// Moves control frames onto the wire. True when streams may follow.
    pub fn take_control(&mut self) -> bool {
        if !matches!(self.rest, Rest::None) {
            return false;
        }
        if self.written == self.wire.len() {
            self.written = 0;
            self.wire.clear();
            // One large burst of answers must not be remembered by its size for ever.
            if self.wire.capacity() > 4 * WIRE_BYTES {
                self.wire = Vec::new();
            }
        }
        if self.wire.is_empty() {
            std::mem::swap(&mut self.wire, &mut self.control);
        } else {
            self.wire.append(&mut self.control);
        }
        self.wire.len() - self.written < WIRE_BYTES
    }

    /// Appends a whole frame.
    pub fn push(&mut self, kind: Kind, stream: u32, tag: Tag, payload: [&[u8]; 2]) {
        let length = payload[0].len() + payload[1].len();
        self.push_header(kind, stream, tag, length);
        self.wire.extend_from_slice(payload[0]);
        self.wire.extend_from_slice(payload[1]);
    }

    /// Appends a header whose payload follows in `rest`.
    pub fn push_header(&mut self, kind: Kind, stream: u32, tag: Tag, length: usize) {
        self.wire.reserve(HEADER_BYTES + if length <= SMALL_PAYLOAD { length } else { 0 });
        self.wire.extend_from_slice(&Header { length, stream, kind, tag }.encode());
    }

    /// Appends frames that are encoded already.
    pub fn push_encoded(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.wire);
    }

    /// Writes once: the wire, then `rest`, whose bytes the caller holds. Returns how much of `rest` went.
    pub fn write(&mut self, rest: [&[u8]; 2]) -> Result<usize> {
        let head = &self.wire[self.written..];
        let slices = [IoSlice::new(head), IoSlice::new(rest[0]), IoSlice::new(rest[1])];
        let count = loop {
            match writev(&self.fd, &slices) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        let of_head = count.min(head.len());
        self.written += of_head;
        Ok(count - of_head)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
