//! Questions about names over TCP: few programs ask that way, and none for long.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::io::{Errno, read, write};

use super::events::{EventFlags, Poller, Token};
use crate::egress::{dns, names::Names};

const MAX_CALLERS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);

struct Caller {
    number: u32,
    fd: OwnedFd,
    asked: Vec<u8>,
    until: Instant,
}

#[derive(Default)]
pub struct NameCallers {
    callers: Vec<Caller>,
    last: u32,
}

impl NameCallers {
    /// The one that came first makes room.
    pub fn take(&mut self, fd: OwnedFd, poller: &Poller) {
        if self.callers.len() >= MAX_CALLERS {
            self.callers.remove(0);
        }
        self.last = self.last.wrapping_add(1);
        if poller.add(&fd, Token::NameCaller(self.last), EventFlags::IN).is_ok() {
            let until = Instant::now() + PATIENCE;
            self.callers.push(Caller { number: self.last, fd, asked: Vec::new(), until });
        }
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.callers.iter().map(|caller| caller.until).min()
    }

    pub fn on_time(&mut self, now: Instant) {
        self.callers.retain(|caller| caller.until > now);
    }

    pub fn hear(&mut self, number: u32, names: &mut Names) {
        let Some(index) = self.callers.iter().position(|caller| caller.number == number) else { return };
        if self.callers[index].hear(names).is_none() {
            self.callers.remove(index);
        }
    }
}

impl Caller {
    /// Nothing when it is over.
    fn hear(&mut self, names: &mut Names) -> Option<()> {
        let mut buffer = [0; 2 + dns::MAX_QUERY];
        match read(&self.fd, &mut buffer) {
            Ok(0) => return None,
            Ok(count) => self.asked.extend(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return Some(()),
            Err(_) => return None,
        }
        while let Some(length) = self.asked.first_chunk().map(|bytes| usize::from(u16::from_be_bytes(*bytes))) {
            if length > dns::MAX_QUERY {
                return None;
            }
            let Some(query) = self.asked.get(2..2 + length) else { break };
            let answer = dns::answer(query, names)?;
            let mut message = (answer.len() as u16).to_be_bytes().to_vec();
            message.extend(answer);
            // A few answers fit into the socket's buffer; whoever does not read them is not waited for.
            if write(&self.fd, &message) != Ok(message.len()) {
                return None;
            }
            self.asked.drain(..2 + length);
        }
        Some(())
    }
}
