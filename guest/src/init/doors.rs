//! Who comes in: the daemon, and before the seal brokers that hand in mounts.

use std::{
    io::IoSliceMut,
    mem::{self, MaybeUninit},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    io::{Errno, read, write},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SocketFlags, accept_with, recvmsg},
};

use super::{
    events::{EventFlags, Token},
    failure::failure,
    guest::Guest,
    link::Link,
    sealing::MAX_MOUNTS,
};
use crate::{
    build_id::BUILD_ID,
    frame::{Broken, Decoder, Kind, push_control},
    proto::link::{
        Done, Failure, GuestControl, GuestHello, HostControl, HostHello, guest_control, host_control, host_hello::Role,
    },
    rules::{LINK_VERSION, LINK_WINDOW_BYTES},
};

/// A connection that says nothing of use for so long is closed.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_NEWCOMERS: usize = 16;

pub struct Newcomer {
    number: u32,
    fd: OwnedFd,
    decoder: Decoder,
    /// Descriptors that came along and are not yet spoken for.
    descriptors: Vec<OwnedFd>,
    is_broker: bool,
    /// Not a socket but a port of a virtual machine, which carries no descriptors.
    is_port: bool,
    /// Not for ports, which may be handed over before anybody comes.
    pub until: Option<Instant>,
}

impl Guest {
    pub fn accept(&mut self) {
        while let Ok(fd) = accept_with(&self.door, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            if self.newcomers.len() >= MAX_NEWCOMERS {
                self.newcomers.remove(0);
            }
            self.let_in(fd, false);
        }
    }

    fn let_in(&mut self, fd: OwnedFd, is_port: bool) {
        self.last_connection = self.last_connection.wrapping_add(1);
        let number = self.last_connection;
        // By edges: a port whose host is not connected is always ready.
        let interest = if is_port { EventFlags::IN | EventFlags::ET } else { EventFlags::IN };
        if self.poller.add(&fd, Token::Connection(number), interest).is_ok() {
            self.newcomers.push(Newcomer {
                number,
                fd,
                decoder: Decoder::default(),
                descriptors: Vec::new(),
                is_broker: false,
                is_port,
                until: (!is_port).then(|| Instant::now() + PATIENCE),
            });
            // What it has to say has usually come with it.
            self.on_newcomer(number);
        }
    }

    pub fn on_newcomer(&mut self, number: u32) {
        let Some(index) = self.newcomers.iter().position(|newcomer| newcomer.number == number) else { return };
        let mut newcomer = self.newcomers.swap_remove(index);
        match newcomer.receive() {
            Err(Errno::AGAIN | Errno::INTR) => self.newcomers.push(newcomer),
            Ok(0) if newcomer.is_port => self.newcomers.push(newcomer),
            Ok(0) => {}
            Err(_) => {}
            Ok(_) => self.hear(newcomer),
        }
    }

    /// Handles what a newcomer has said so far; keeps it while it may say more.
    fn hear(&mut self, mut newcomer: Newcomer) {
        loop {
            let message = match newcomer.next() {
                Ok(Some(message)) => message,
                Ok(None) => return self.newcomers.push(newcomer),
                Err(_) => return,
            };
            match message.message {
                Some(host_control::Message::Hello(hello)) if !newcomer.is_broker => {
                    match self.welcome(&mut newcomer, message.id, &hello) {
                        Ok(Role::Broker) => {}
                        Ok(Role::Port) => return self.change_port(newcomer, message.id),
                        Ok(_) => return self.become_link(newcomer, message.id, &hello),
                        Err(failure) => return newcomer.answer(message.id, Err(failure)),
                    }
                }
                Some(host_control::Message::Mounts(mounts)) if newcomer.is_broker => {
                    let descriptors = mem::take(&mut newcomer.descriptors);
                    if descriptors.len() != mounts.count as usize {
                        let refusal = failure("INVALID_INPUT", "not as many descriptors as the message says");
                        return newcomer.answer(message.id, Err(refusal));
                    }
                    match self.wall.take_mounts(descriptors) {
                        Ok(()) => newcomer.answer(message.id, Ok(guest_control::Message::Done(Done {}))),
                        Err(failure) => return newcomer.answer(message.id, Err(failure)),
                    }
                    // It has said what it came to say. Closing the wall closes its descriptor: nobody may own that
                    // number any more then, or a pipe that gets it next would be closed in its stead.
                    drop(newcomer);
                    return self.seal_if_complete();
                }
                _ => return,
            }
        }
    }

    fn welcome(&self, newcomer: &mut Newcomer, id: u32, hello: &HostHello) -> Result<Role, Failure> {
        if hello.version as usize != LINK_VERSION {
            let message = format!("the guest speaks version {LINK_VERSION} of the link");
            return Err(failure("VERSION_MISMATCH", message));
        }
        match hello.role() {
            Role::Host => Ok(Role::Host),
            Role::Port if !newcomer.is_port => Ok(Role::Port),
            Role::Port => Err(failure("INVALID_INPUT", "hello: a port cannot hand over another")),
            Role::Broker if self.wall.is_closed() => {
                Err(failure("FORBIDDEN", "the wall is closed: nothing can be handed in any more"))
            }
            Role::Broker => {
                newcomer.is_broker = true;
                newcomer.answer(id, Ok(guest_control::Message::Hello(self.hello())));
                Ok(Role::Broker)
            }
            Role::Unspecified => Err(failure("INVALID_INPUT", "hello: role")),
        }
    }

    /// Whoever stands around the guest takes the port back, or hands over one on which the daemon has just come.
    fn change_port(&mut self, mut newcomer: Newcomer, id: u32) {
        self.cut();
        self.newcomers.retain(|other| !other.is_port);
        let port = newcomer.descriptors.pop();
        newcomer.answer(id, Ok(guest_control::Message::Done(Done {})));
        drop(newcomer);
        if let Some(port) = port {
            self.let_in(port, true);
        }
    }

    /// The newest connection of the daemon replaces the one before.
    fn become_link(&mut self, newcomer: Newcomer, id: u32, hello: &HostHello) {
        if !newcomer.descriptors.is_empty() {
            return;
        }
        self.cut();
        if self.resume(&hello.received).is_err() {
            return;
        }
        let token = Token::Connection(newcomer.number);
        if newcomer.is_port && self.poller.change(&newcomer.fd, token, EventFlags::IN).is_err() {
            return;
        }
        let mut link = Link::new(newcomer.number, newcomer.fd, newcomer.decoder);
        let message = Some(guest_control::Message::Hello(self.hello()));
        push_control(&mut link.control, &GuestControl { id, failure: None, message });
        self.link = Some(link);
        self.gateway.listen(&self.poller, true);
        self.enlist_all();
        self.handle_frames();
    }

    fn hello(&self) -> GuestHello {
        GuestHello {
            version: LINK_VERSION as u32,
            build: BUILD_ID.into(),
            sealed: self.wall.is_closed(),
            window: LINK_WINDOW_BYTES as u32,
            processes: self.processes.values().map(|process| process.state()).collect(),
            next_stream: self.last_stream.saturating_add(1),
        }
    }
}

impl Newcomer {
    /// Reads bytes and the descriptors that travel with them.
    fn receive(&mut self) -> Result<usize, Errno> {
        if self.is_port {
            let count = read(&self.fd, self.decoder.space())?;
            self.decoder.filled(count);
            return Ok(count);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MOUNTS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [IoSliceMut::new(self.decoder.space())];
        let message = recvmsg(&self.fd, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                self.descriptors.extend(descriptors);
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) || self.descriptors.len() > MAX_MOUNTS {
            return Err(Errno::TOOBIG);
        }
        self.decoder.filled(message.bytes);
        Ok(message.bytes)
    }

    fn next(&mut self) -> Result<Option<HostControl>, Broken> {
        match self.decoder.next()? {
            Some(frame) if frame.kind == Kind::Control => frame.message().map(Some),
            Some(_) => Err(Broken("a stream before hello")),
            None => Ok(None),
        }
    }

    /// Answers are few and short: if the socket does not take one, nobody is there to read it.
    fn answer(&self, id: u32, result: Result<guest_control::Message, Failure>) {
        let (failure, message) = match result {
            Ok(message) => (None, Some(message)),
            Err(failure) => (Some(failure), None),
        };
        let mut frame = Vec::new();
        push_control(&mut frame, &GuestControl { id, failure, message });
        let _ = write(&self.fd, &frame);
    }
}
