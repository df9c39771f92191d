//! TCP connections as streams of the link, in both directions of opening.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::OwnedFd;

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt},
};

use super::{
    events::{EventFlags, Token},
    failure::{because, failure},
    guest::Guest,
    link::{Rest, SMALL_PAYLOAD, Turn},
    socket::{Dialling, Given, Socket, refuse},
};
use crate::{
    egress::ports,
    frame::{Broken, Frame, Kind, Tag, push_ack},
    proto::link::{Dial, Done, Failure, guest_control::Message},
    rules::{LINK_CONNECTIONS, LINK_CONNECTIONS_QUEUED_BYTES},
};

/// The most that one connection is read at a time.
const READ_BYTES: usize = 64 * 1024;

impl Guest {
    /// One turn of a connection on the link.
    pub fn send_socket(&mut self, stream: u32) {
        let (Some(link), Some(socket)) = (&mut self.link, self.gateway.sockets.get_mut(&stream)) else { return };
        socket.enlisted = false;
        let buffer = &mut self.gateway.buffer;
        buffer.resize(READ_BYTES, 0);
        match socket.give(buffer) {
            Ok(Given::Data(count)) if count <= SMALL_PAYLOAD => {
                link.push(Kind::Data, stream, Tag::None, [&buffer[..count], &[]]);
            }
            Ok(Given::Data(count)) => {
                link.push_header(Kind::Data, stream, Tag::None, count);
                let mut bytes = std::mem::take(buffer);
                bytes.truncate(count);
                link.rest = Rest::Owned { bytes, at: 0 };
            }
            Ok(Given::End) => link.push(Kind::End, stream, Tag::None, [&[], &[]]),
            Ok(Given::Nothing) => {}
            Err(_) => {
                link.push(Kind::Reset, stream, Tag::None, [&[], &[]]);
                self.drop_socket(stream);
                return;
            }
        }
        self.enlist_socket(stream);
    }

    /// Gives a connection its turn if there is something to send, and lets go of it when it is over.
    pub fn enlist_socket(&mut self, stream: u32) {
        let (Some(link), Some(socket)) = (&mut self.link, self.gateway.sockets.get_mut(&stream)) else { return };
        if socket.is_over() {
            self.gateway.sockets.remove(&stream);
        } else if !socket.enlisted && socket.has_something_to_send() {
            socket.enlisted = true;
            link.ready.push_back(Turn::Socket(stream));
        }
    }

    pub fn on_socket(&mut self, stream: u32, flags: EventFlags) {
        let Some(socket) = self.gateway.sockets.get_mut(&stream) else { return };
        if let Some(dialling) = socket.dialling {
            return self.on_dialled(stream, dialling, flags);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            socket.became_readable();
        }
        let flushed = socket.flush();
        if flags.contains(EventFlags::ERR) || flushed.is_err() {
            return self.reset_socket(stream);
        }
        self.after_writing(stream);
    }

    pub fn on_socket_frame(&mut self, frame: Frame<'_>) -> Result<(), Broken> {
        let stream = frame.stream;
        let Some(socket) = self.gateway.sockets.get_mut(&stream) else { return Ok(()) };
        let written = match frame.kind {
            Kind::Data => socket.accept(frame.payload)?,
            Kind::End => socket.end(),
            Kind::Ack => {
                socket.acknowledge(frame.position()?)?;
                Ok(())
            }
            Kind::Reset | Kind::Control => {
                self.drop_socket(stream);
                return Ok(());
            }
        };
        let waits = socket.waiting();
        match written {
            // Programs that take nothing must not fill the guest's memory, however many connections they have.
            Ok(()) if waits > 0 && self.waiting_bytes() > LINK_CONNECTIONS_QUEUED_BYTES => self.reset_socket(stream),
            Ok(()) => self.after_writing(stream),
            Err(_) => self.reset_socket(stream),
        }
        Ok(())
    }

    fn waiting_bytes(&self) -> usize {
        self.gateway.sockets.values().map(Socket::waiting).sum()
    }

    fn after_writing(&mut self, stream: u32) {
        let (Some(link), Some(socket)) = (&mut self.link, self.gateway.sockets.get_mut(&stream)) else { return };
        if let Some(position) = socket.news() {
            push_ack(&mut link.control, stream, position);
        }
        self.enlist_socket(stream);
    }

    /// The connection has failed inside: both sides hear of it.
    fn reset_socket(&mut self, stream: u32) {
        if let Some(link) = &mut self.link {
            // Ahead of everything that was read and is still to be sent: nobody wants that any more.
            push_reset(&mut link.control, stream);
        }
        self.drop_socket(stream);
    }

    fn drop_socket(&mut self, stream: u32) {
        if let Some(socket) = self.gateway.sockets.remove(&stream) {
            refuse(socket.fd);
        }
    }

    /// The link was cut: no connection survives that.
    pub fn drop_sockets(&mut self) {
        for (_, socket) in self.gateway.sockets.drain() {
            refuse(socket.fd);
        }
    }

    /// Opens a connection to a port inside; the answer comes when it is open.
    pub fn dial(&mut self, id: u32, dial: &Dial) -> Result<(), Failure> {
        self.claim_stream(dial.stream)?;
        let port = u16::try_from(dial.port).ok().filter(|port| *port > 0 && !ports::is_own(*port));
        let Some(port) = port else { return Err(failure("PORT_CLOSED", "no port of the sandbox's programs")) };
        if self.gateway.sockets.len() >= 2 * LINK_CONNECTIONS {
            return Err(failure("RATE_LIMITED", "too many connections at once"));
        }
        self.dial_once(dial.stream, Dialling { call: id, port, six: false })
    }

    fn dial_once(&mut self, stream: u32, dialling: Dialling) -> Result<(), Failure> {
        match connecting(dialling) {
            Ok(fd) => {
                let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                self.poller
                    .add(&fd, Token::Socket(stream), interest)
                    .map_err(|errno| because("UNAVAILABLE", "a connection", errno))?;
                self.gateway.sockets.insert(stream, Socket::new(fd, Some(dialling)));
                Ok(())
            }
            Err(Errno::CONNREFUSED) if !dialling.six => self.dial_once(stream, Dialling { six: true, ..dialling }),
            Err(errno) => Err(closed(dialling.port, errno)),
        }
    }

    fn on_dialled(&mut self, stream: u32, dialling: Dialling, flags: EventFlags) {
        if !flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let Some(socket) = self.gateway.sockets.get_mut(&stream) else { return };
        let outcome = match sockopt::socket_error(&socket.fd).unwrap_or_else(Err) {
            Ok(()) => {
                socket.dialling = None;
                self.answer(dialling.call, Ok(Message::Done(Done {})));
                return self.on_socket(stream, EventFlags::IN | EventFlags::OUT);
            }
            Err(_) if !dialling.six => self.dial_once(stream, Dialling { six: true, ..dialling }),
            Err(errno) => Err(closed(dialling.port, errno)),
        };
        if let Err(failure) = outcome {
            self.gateway.sockets.remove(&stream);
            self.answer(dialling.call, Err(failure));
        }
    }
}

/// A socket on its way to a port on loopback.
fn connecting(dialling: Dialling) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = if dialling.six { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = socket_with(family, SocketType::STREAM, flags, None)?;
    let connected = match dialling.six {
        true => connect(&fd, &SocketAddrV6::new(Ipv6Addr::LOCALHOST, dialling.port, 0, 0)),
        false => connect(&fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, dialling.port)),
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(errno),
    }
}

fn closed(port: u16, errno: Errno) -> Failure {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS => because("UNAVAILABLE", "a connection", errno),
        _ => failure("PORT_CLOSED", format!("nothing listens on port {port} in the sandbox")),
    }
}

fn push_reset(out: &mut Vec<u8>, stream: u32) {
    out.extend_from_slice(&crate::frame::Header::new(Kind::Reset, stream, 0).encode());
}
