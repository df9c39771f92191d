//! Work that may block or must not touch the keeper itself is done by a forked child that writes
//! its reply into a pipe and ends.

use std::os::fd::OwnedFd;

use rustix::{
    io::{Errno, read, write},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait, waitpid},
};

use super::{
    failure::Failure,
    wire::{Inbox, framed},
};
use crate::{
    proto::keeper::{KeeperReply, keeper_reply::Reply},
    sys::{descriptors::close_range, launching::place_descriptor, worker},
};

pub struct Worker {
    /// The request it works on.
    pub id: u32,
    pub pipe: OwnedFd,
    pid: Pid,
    inbox: Inbox,
    answered: bool,
}

impl Worker {
    pub fn start(id: u32, work: impl FnOnce() -> Result<Reply, Failure>) -> Result<Self, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        match worker::fork()? {
            worker::Forked::Parent(pid) => Ok(Self { id, pipe: read, pid, inbox: Inbox::default(), answered: false }),
            worker::Forked::Child => {
                run(id, write, work);
                // Nobody waits for the reply any more: time for what it has started itself.
                while wait(WaitOptions::empty()).is_ok() {}
                worker::exit_now(0)
            }
        }
    }

    /// To be called when the pipe is ready: bytes for the daemon (none yet, if the reply is not whole),
    /// or nothing more at all.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 16384];
        match read(&self.pipe, &mut buffer) {
            Ok(0) => return None,
            Ok(count) => self.inbox.push(&buffer[..count]),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        match self.inbox.next() {
            Ok(Some(reply)) if !self.answered => {
                self.answered = true;
                Some([&(reply.len() as u32).to_le_bytes(), reply].concat())
            }
            Ok(_) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// To be called after the last word: an error if there was none.
    pub fn end(&self) -> Result<(), Failure> {
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
        if self.answered { Ok(()) } else { Err(Failure::new("INTERNAL", "the keeper's worker died")) }
    }
}

/// A worker that is forked already and waits for its request: a fork takes longer than most of what is asked for.
pub struct Standby {
    requests: OwnedFd,
    replies: OwnedFd,
    pid: Pid,
}

impl Standby {
    /// `work` gets the bytes of the one message that it will be given.
    pub fn new(work: impl FnOnce(&[u8]) -> (u32, Result<Reply, Failure>)) -> Result<Self, Errno> {
        let (receive, requests) = pipe_with(PipeFlags::CLOEXEC)?;
        let (replies, reply) = pipe_with(PipeFlags::CLOEXEC)?;
        match worker::fork()? {
            worker::Forked::Parent(pid) => Ok(Self { requests, replies, pid }),
            worker::Forked::Child => {
                if place_descriptor(&receive, 0).is_ok() && settle(reply) {
                    std::mem::forget((receive, requests, replies));
                    if let Some(message) = receive_one() {
                        let (id, result) = work(&message);
                        tell(id, result);
                    }
                }
                while wait(WaitOptions::empty()).is_ok() {}
                worker::exit_now(0)
            }
        }
    }

    /// It is not needed: without a request it ends.
    pub fn dismiss(self) {
        drop(self.requests);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// Gives it its request, whole or not at all: a pipe takes this much at once.
    pub fn begin(self, id: u32, message: &[u8]) -> Result<Worker, Self> {
        let framed = [&(message.len() as u32).to_le_bytes(), message].concat();
        if framed.len() > PIPE_BYTES || write(&self.requests, &framed) != Ok(framed.len()) {
            return Err(self);
        }
        Ok(Worker { id, pipe: self.replies, pid: self.pid, inbox: Inbox::default(), answered: false })
    }
}

/// What an empty pipe takes without waiting.
const PIPE_BYTES: usize = 4096;

/// In a standby: the request, or nothing when the keeper has gone or made do without it.
fn receive_one() -> Option<Vec<u8>> {
    let mut inbox = Inbox::default();
    loop {
        let mut buffer = [0; PIPE_BYTES];
        match read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => return None,
            Ok(count) => inbox.push(&buffer[..count]),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if let Some(message) = inbox.next().ok()? {
            return Some(message.to_vec());
        }
    }
}

fn run(id: u32, pipe: OwnedFd, work: impl FnOnce() -> Result<Reply, Failure>) {
    if settle(pipe) {
        tell(id, work());
    }
}

/// A worker holds nothing of the keeper's but the pipe to it, and dies with it.
fn settle(pipe: OwnedFd) -> bool {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if place_descriptor(&pipe, 1).is_err() || close_range(3, u32::MAX).is_err() {
        return false;
    }
    std::mem::forget(pipe);
    true
}

fn tell(id: u32, result: Result<Reply, Failure>) {
    let reply = match result {
        Ok(reply) => KeeperReply { id, failure: None, reply: Some(reply) },
        Err(failure) => failure.reply(id),
    };
    let bytes = framed(&reply);
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
