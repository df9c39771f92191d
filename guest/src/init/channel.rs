//! A file call's two directions between its thread and the loop.

use std::{
    cell::OnceCell,
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::write,
};

use super::{calls::CallNumber, failure::failure, link::TURN_BYTES};
use crate::{
    files::{Channel, Closed},
    proto::link::{Failure, FileReply},
    rules::LINK_WINDOW_BYTES,
};

/// What a thread has to tell the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    Changed(CallNumber),
    Finished(CallNumber),
}

/// Wakes the loop.
pub struct Wake {
    fd: OwnedFd,
    notes: Mutex<Vec<Note>>,
}

impl Wake {
    pub fn new() -> rustix::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { fd, notes: Mutex::default() })
    }

    fn tell(&self, note: Note) {
        let mut notes = lock(&self.notes);
        notes.push(note);
        if notes.len() == 1 {
            let _ = write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// All notes since the last time.
    pub fn take(&self) -> Vec<Note> {
        let mut notes = lock(&self.notes);
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        std::mem::take(&mut *notes)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What a thread gives the loop to send, in this order.
pub enum Outgoing {
    Reply(Result<FileReply, Failure>),
    Data(Vec<u8>),
    End,
    Reset(Failure),
}

#[derive(Default)]
pub struct State {
    pub outgoing: VecDeque<Outgoing>,
    pub incoming: VecDeque<Vec<u8>>,
    pub incoming_ended: bool,
    /// Positions: input taken by the call; output queued by it, and acknowledged by the daemon.
    pub taken: u64,
    told_taken: u64,
    queued: u64,
    pub acknowledged: u64,
    closed: bool,
    on_close: Option<Arc<OwnedFd>>,
    replied: bool,
    /// Nothing is to follow on the stream.
    ended: bool,
}

pub struct Shared {
    number: CallNumber,
    state: Mutex<State>,
    changed: Condvar,
    wake: Arc<Wake>,
}

impl Shared {
    pub fn new(number: CallNumber, wake: Arc<Wake>) -> Arc<Self> {
        Arc::new(Self { number, state: Mutex::default(), changed: Condvar::new(), wake })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The loop changed something that the thread may wait for.
    pub fn notify(&self) {
        self.changed.notify_one();
    }

    /// The stream is gone: whatever the thread does next fails.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.outgoing.clear();
        state.incoming.clear();
        if let Some(fd) = &state.on_close {
            let _ = write(fd, &1u64.to_ne_bytes());
        }
        self.changed.notify_one();
    }
}

/// The thread's side.
pub struct CallChannel {
    shared: Arc<Shared>,
    /// The call sends content of its own after its reply, which must come to an end.
    sends: bool,
    closed: OnceCell<Option<Arc<OwnedFd>>>,
}

impl CallChannel {
    pub fn new(shared: Arc<Shared>, sends: bool) -> Self {
        Self { shared, sends, closed: OnceCell::new() }
    }

    fn tell(&self) {
        self.shared.wake.tell(Note::Changed(self.shared.number));
    }

    /// Waits until `length` more bytes fit, or any when `length` is 0; gives the room there is.
    fn wait_for_room(&self, length: usize) -> Result<(MutexGuard<'_, State>, usize), Closed> {
        let mut state = self.shared.lock();
        loop {
            if state.closed || state.ended {
                return Err(Closed);
            }
            let room = LINK_WINDOW_BYTES - (state.queued - state.acknowledged) as usize;
            if room >= length.max(1) {
                return Ok((state, room));
            }
            state = self.shared.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Channel for CallChannel {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() {
            let (mut state, room) = self.wait_for_room(0)?;
            let (piece, rest) = bytes.split_at(bytes.len().min(room).min(TURN_BYTES));
            state.queued += piece.len() as u64;
            state.outgoing.push_back(Outgoing::Data(piece.to_vec()));
            drop(state);
            self.tell();
            bytes = rest;
        }
        Ok(())
    }

    fn send_message(&mut self, bytes: Vec<u8>) -> Result<(), Closed> {
        if bytes.len() > LINK_WINDOW_BYTES {
            let too_large = failure("TOO_LARGE", "one message is larger than the stream's window");
            return self.reply(Err(too_large)).and(Err(Closed));
        }
        let (mut state, _) = self.wait_for_room(bytes.len())?;
        state.queued += bytes.len() as u64;
        state.outgoing.push_back(Outgoing::Data(bytes));
        drop(state);
        self.tell();
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Closed> {
        let mut state = self.shared.lock();
        loop {
            if state.closed {
                return Err(Closed);
            }
            if let Some(bytes) = state.incoming.pop_front() {
                state.taken += bytes.len() as u64;
                // The daemon need not hear of every piece, only before it could run dry.
                let untold = state.taken - state.told_taken;
                let tell = state.incoming.is_empty() || untold >= LINK_WINDOW_BYTES as u64 / 4;
                if tell {
                    state.told_taken = state.taken;
                }
                drop(state);
                if tell {
                    self.tell();
                }
                return Ok(Some(bytes));
            }
            if state.incoming_ended {
                return Ok(None);
            }
            state = self.shared.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn end(&mut self) -> Result<(), Closed> {
        let mut state = self.shared.lock();
        if state.closed || state.ended {
            return Err(Closed);
        }
        state.ended = true;
        state.outgoing.push_back(Outgoing::End);
        drop(state);
        self.tell();
        Ok(())
    }

    fn fail(&mut self, failure: Failure) -> Result<(), Closed> {
        self.reply(Err(failure))
    }

    /// A failure after the reply gives the stream up: the daemon gets it as a RESET.
    fn reply(&mut self, reply: Result<FileReply, Failure>) -> Result<(), Closed> {
        let mut state = self.shared.lock();
        if state.closed || state.ended {
            return Err(Closed);
        }
        let item = match reply {
            Err(failure) if state.replied => Outgoing::Reset(failure),
            _ if state.replied => return Ok(()),
            reply => Outgoing::Reply(reply),
        };
        state.ended = !matches!(item, Outgoing::Reply(Ok(_)));
        state.replied = true;
        state.outgoing.push_back(item);
        drop(state);
        self.tell();
        Ok(())
    }

    fn closed_fd(&self) -> BorrowedFd<'_> {
        let made = self.closed.get_or_init(|| {
            let mut state = self.shared.lock();
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let fd = eventfd(u32::from(state.closed), flags).ok().map(Arc::new);
            state.on_close.clone_from(&fd);
            fd
        });
        match made {
            Some(fd) => fd.as_fd(),
            // Out of descriptors: the loop's own does for waiting, if only more often than need be.
            None => self.shared.wake.as_fd(),
        }
    }
}

impl Drop for CallChannel {
    /// The call is over, however it ended: the daemon gets an answer and an end.
    fn drop(&mut self) {
        let unanswered = !self.shared.lock().replied;
        if unanswered || self.sends {
            // Nothing when the call was answered and ended as it should be.
            let _ = self.reply(Err(failure("INTERNAL", "the call ended before its content did")));
        }
        self.shared.wake.tell(Note::Finished(self.shared.number));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
