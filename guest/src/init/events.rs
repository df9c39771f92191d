//! What the loop waits for.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{Timespec, epoll},
    io::{Errno, Result},
};

pub use rustix::event::epoll::EventFlags;

/// What a descriptor is to the loop; packed into epoll's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The listening socket.
    Door,
    /// A child changed state.
    Children,
    /// A file call's thread has news.
    Wake,
    /// The connection with this number.
    Connection(u32),
    /// The pipe from a process's monitor, and the process's own descriptors, by stream.
    Report(u32),
    Stdin(u32),
    Stdout(u32),
    Stderr(u32),
    /// A listener of the gateway, by its place; the socket of names, and callers on TCP; a connection, by stream.
    Listener(u32),
    Names,
    NameCaller(u32),
    Socket(u32),
}

impl Token {
    fn pack(self) -> u64 {
        let (kind, number) = match self {
            Self::Door => (0, 0),
            Self::Children => (1, 0),
            Self::Wake => (2, 0),
            Self::Connection(number) => (3, number),
            Self::Report(stream) => (4, stream),
            Self::Stdin(stream) => (5, stream),
            Self::Stdout(stream) => (6, stream),
            Self::Stderr(stream) => (7, stream),
            Self::Listener(index) => (8, index),
            Self::Names => (9, 0),
            Self::NameCaller(number) => (10, number),
            Self::Socket(stream) => (11, stream),
        };
        kind << 32 | u64::from(number)
    }

    fn unpack(word: u64) -> Option<Self> {
        let number = word as u32;
        Some(match word >> 32 {
            0 => Self::Door,
            1 => Self::Children,
            2 => Self::Wake,
            3 => Self::Connection(number),
            4 => Self::Report(number),
            5 => Self::Stdin(number),
            6 => Self::Stdout(number),
            7 => Self::Stderr(number),
            8 => Self::Listener(number),
            9 => Self::Names,
            10 => Self::NameCaller(number),
            11 => Self::Socket(number),
            _ => return None,
        })
    }
}

/// Level-triggered: what is not dealt with is told again.
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub fn new() -> Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    pub fn add(&self, fd: impl AsFd, token: Token, interest: EventFlags) -> Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token.pack()), interest)
    }

    pub fn change(&self, fd: impl AsFd, token: Token, interest: EventFlags) -> Result<()> {
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token.pack()), interest)
    }

    /// Needed only for a descriptor that stays open: closing removes by itself.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits at most `limit` (rounded up to milliseconds) and gives what has happened.
    pub fn wait(&self, limit: Option<Duration>, happened: &mut Vec<(Token, EventFlags)>) -> Result<()> {
        let empty = epoll::Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [empty; 64];
        let limit = limit.map(|limit| {
            let millis = limit.as_micros().div_ceil(1000).min(3_600_000) as i64;
            Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 }
        });
        happened.clear();
        match epoll::wait(&self.epoll, &mut events[..], limit.as_ref()) {
            Ok(count) => {
                for event in &events[..count] {
                    let (flags, data) = (event.flags, event.data);
                    happened.extend(Token::unpack(data.u64()).map(|token| (token, flags)));
                }
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
