//! Writing to the link: answers first, then every stream in its turn, so that a flood on one never
//! stalls another. Streams are not copied into a queue: the kernel's socket buffer is the queue.

use std::mem;

use rustix::io::{Errno, Result};

use super::{
    events::{EventFlags, Token},
    guest::Guest,
    link::{Link, Rest, SMALL_PAYLOAD, TURN_BYTES, Turn},
    process::Process,
};
use crate::{
    frame::{Kind, push_control},
    proto::link::{GuestControl, guest_control::Message},
};

/// Gives a process its turn on the link if it has something to send.
pub fn enlist(link: Option<&mut Link>, process: &mut Process) {
    if let Some(link) = link {
        if !process.enlisted && process.has_something_to_send() {
            process.enlisted = true;
            link.ready.push_back(Turn::Process(process.stream));
        }
    }
}

impl Guest {
    /// Writes what the socket takes.
    pub fn flush(&mut self) {
        loop {
            self.fill_wire();
            match self.write_once() {
                Ok(true) => {}
                Ok(false) => return self.set_interest(false),
                Err(Errno::AGAIN) => return self.set_interest(true),
                Err(_) => return self.cut(),
            }
        }
    }

    fn fill_wire(&mut self) {
        while let Some(link) = &mut self.link {
            if !link.take_control() {
                return;
            }
            match link.ready.pop_front() {
                Some(Turn::Process(stream)) => self.send_output(stream),
                Some(Turn::Call(number)) => self.calls.send(number, link),
                Some(Turn::Socket(stream)) => self.send_socket(stream),
                None => return,
            }
        }
    }

    /// One turn of a process: a piece of output, or its exit once all output is sent.
    fn send_output(&mut self, stream: u32) {
        let (Some(link), Some(process)) = (&mut self.link, self.processes.get_mut(&stream)) else { return };
        process.enlisted = false;
        if let Some(piece) = process.output.next_piece(TURN_BYTES) {
            let length = (piece.to - piece.from) as usize;
            if length > SMALL_PAYLOAD {
                link.push_header(Kind::Data, stream, piece.tag, length);
                link.rest = Rest::Output { stream, from: piece.from, to: piece.to };
                // It has its next turn when this one is over.
                process.enlisted = true;
                return;
            }
            let (first, second) = process.output.slices(piece.from, piece.to);
            link.push(Kind::Data, stream, piece.tag, [first, second]);
            process.output.sent_up_to(piece.to);
        } else if let Some(exited) = process.exit_to_tell() {
            let message = GuestControl { message: Some(Message::Exited(exited)), ..Default::default() };
            link.push_encoded(|wire| push_control(wire, &message));
            process.told = true;
        }
        enlist(Some(link), process);
    }

    /// True when something was written and there may be more.
    fn write_once(&mut self) -> Result<bool> {
        let Some(link) = &mut self.link else { return Ok(false) };
        if !link.has_something_to_write() {
            return Ok(false);
        }
        match mem::replace(&mut link.rest, Rest::None) {
            Rest::None => {
                link.write([&[], &[]])?;
            }
            Rest::Output { stream, from, to } => {
                // Forgetting a process copies what is left of such a frame, so it is there.
                let Some(process) = self.processes.get_mut(&stream) else { return Err(Errno::PIPE) };
                let (first, second) = process.output.slices(from, to);
                let written = link.write([first, second]);
                let from = from + *written.as_ref().unwrap_or(&0) as u64;
                // The daemon may acknowledge a part of a frame while the rest is still to be written.
                process.output.sent_up_to(from);
                if from < to {
                    link.rest = Rest::Output { stream, from, to };
                } else {
                    process.enlisted = false;
                    enlist(Some(link), process);
                }
                written?;
            }
            Rest::Owned { bytes, at } => {
                let written = link.write([&bytes[at..], &[]]);
                let at = at + *written.as_ref().unwrap_or(&0);
                if at < bytes.len() {
                    link.rest = Rest::Owned { bytes, at };
                }
                written?;
            }
        }
        Ok(true)
    }

    /// A process is about to go while a frame with its output is half written.
    pub fn detach_rest(&mut self, stream: u32) {
        let (Some(link), Some(process)) = (&mut self.link, self.processes.get(&stream)) else { return };
        if let Rest::Output { stream: of, from, to } = link.rest {
            if of == stream {
                let (first, second) = process.output.slices(from, to);
                link.rest = Rest::Owned { bytes: [first, second].concat(), at: 0 };
            }
        }
    }

    fn set_interest(&mut self, write: bool) {
        let paused = self.is_paused();
        let Some(link) = &mut self.link else { return };
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, !paused);
        interest.set(EventFlags::OUT, write);
        if interest != link.interest {
            link.interest = interest;
            if self.poller.change(&link.fd, Token::Connection(link.number), interest).is_err() {
                self.cut();
            }
        }
    }
}
