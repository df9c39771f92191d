//! Meeting the programs inside: their connections become streams of the link, their questions about names are answered
//! here. As few as there may be at once; more are refused, not kept.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::OwnedFd,
};

use rustix::{
    io::{Errno, fcntl_dupfd_cloexec},
    net::{RecvFlags, SendFlags, SocketFlags, accept_with, recvfrom, sendto},
};

use super::{
    events::{EventFlags, Poller, Token},
    guest::Guest,
    name_callers::NameCallers,
    socket::{Socket, refuse},
};
use crate::{
    egress::{
        dns,
        listeners::{Listeners, Role, destination},
        names::{Names, is_synthetic},
    },
    frame::push_control,
    proto::link::{Connect, GuestControl, connect::Kind, guest_control::Message},
    rules::LINK_CONNECTIONS,
};

/// Streams from here on are the guest's own.
pub const FIRST_GUEST_STREAM: u32 = 0x8000_0000;
/// At most so many of one kind before the loop looks at everything else again.
const AT_ONCE: usize = 64;

pub struct Gateway {
    pub listeners: Listeners,
    pub names: Names,
    pub callers: NameCallers,
    /// By stream.
    pub sockets: HashMap<u32, Socket>,
    /// The highest stream that was opened from here.
    pub last_stream: u32,
    pub buffer: Vec<u8>,
    limit: usize,
    /// Given up for a moment to refuse a connection when there is no other descriptor left.
    reserve: Option<OwnedFd>,
}

impl Gateway {
    /// `descriptors`: as many as the process may have.
    pub fn new(listeners: Listeners, poller: &Poller, descriptors: u64) -> rustix::io::Result<Self> {
        for (index, listener) in listeners.tcp.iter().enumerate() {
            poller.add(&listener.fd, Token::Listener(index as u32), EventFlags::empty())?;
        }
        if let Some(names) = &listeners.names {
            poller.add(names, Token::Names, EventFlags::IN)?;
        }
        let reserve = listeners.tcp.first().map(|listener| fcntl_dupfd_cloexec(&listener.fd, 3)).transpose()?;
        Ok(Self {
            listeners,
            names: Names::default(),
            callers: NameCallers::default(),
            sockets: HashMap::new(),
            last_stream: FIRST_GUEST_STREAM - 1,
            buffer: Vec::new(),
            limit: LINK_CONNECTIONS.min((descriptors / 4) as usize),
            reserve,
        })
    }

    /// Programs are met only while there is somebody to tell; until then they wait.
    pub fn listen(&self, poller: &Poller, whether: bool) {
        let interest = if whether { EventFlags::IN } else { EventFlags::empty() };
        for (index, listener) in self.listeners.tcp.iter().enumerate() {
            let _ = poller.change(&listener.fd, Token::Listener(index as u32), interest);
        }
    }

    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        use std::os::fd::AsRawFd;
        self.listeners.descriptors().chain(self.reserve.iter().map(|fd| fd.as_raw_fd()))
    }

    fn is_full(&self) -> bool {
        let own = self.sockets.keys().filter(|stream| **stream >= FIRST_GUEST_STREAM).count();
        own >= self.limit || self.last_stream == u32::MAX
    }

    /// The next connection at a listener; nothing when there is none, or it had to be refused for want of room.
    fn accept(&mut self, index: usize) -> Result<Option<OwnedFd>, Errno> {
        let listener = &self.listeners.tcp[index].fd;
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::MFILE | Errno::NFILE) => {
                self.reserve = None;
                if let Ok(fd) = accept_with(listener, SocketFlags::CLOEXEC) {
                    refuse(fd);
                }
                self.reserve = fcntl_dupfd_cloexec(listener, 3).ok();
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Where a connection goes, in the daemon's words. Nothing when it leads nowhere.
    fn target(&mut self, role: Role, fd: &OwnedFd) -> Option<Connect> {
        if role == Role::Proxy {
            return Some(Connect { kind: Kind::Proxy.into(), ..Default::default() });
        }
        let target: SocketAddrV4 = destination(role, fd).ok().flatten()?;
        let address: Ipv4Addr = *target.ip();
        let name = match is_synthetic(address) {
            true => self.names.name(address)?.to_owned(),
            false => address.to_string(),
        };
        Some(Connect { kind: Kind::Transparent.into(), name, port: target.port().into(), ..Default::default() })
    }

    fn answer_names(&mut self) {
        let Some(socket) = &self.listeners.names else { return };
        let mut query = [0u8; dns::MAX_QUERY + 1];
        for _ in 0..AT_ONCE {
            let Ok((length, _, Some(caller))) = recvfrom(socket, &mut query, RecvFlags::empty()) else { return };
            if let Some(answer) = dns::answer(&query[..length.min(query.len())], &mut self.names) {
                // A caller that does not take its answer asks again.
                let _ = sendto(socket, &answer, SendFlags::empty(), &caller);
            }
        }
    }
}

impl Guest {
    pub fn on_names(&mut self) {
        self.gateway.answer_names();
    }

    pub fn on_listener(&mut self, index: usize) {
        let Some(role) = self.gateway.listeners.tcp.get(index).map(|listener| listener.role) else { return };
        for _ in 0..AT_ONCE {
            match self.gateway.accept(index) {
                Ok(Some(fd)) if role == Role::NamesTcp => self.gateway.callers.take(fd, &self.poller),
                Ok(Some(fd)) => self.meet(role, fd),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    /// A program has connected: the daemon hears of it, and of what it says.
    fn meet(&mut self, role: Role, fd: OwnedFd) {
        let Some(link) = self.link.as_mut().filter(|link| !link.is_backlogged()) else { return refuse(fd) };
        if self.gateway.is_full() {
            return refuse(fd);
        }
        let Some(connect) = self.gateway.target(role, &fd) else { return refuse(fd) };
        let stream = self.gateway.last_stream + 1;
        if self
            .poller
            .add(&fd, Token::Socket(stream), EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)
            .is_err()
        {
            return refuse(fd);
        }
        self.gateway.last_stream = stream;
        let message = Some(Message::Connect(Connect { stream, ..connect }));
        push_control(&mut link.control, &GuestControl { id: 0, failure: None, message });
        self.gateway.sockets.insert(stream, Socket::new(fd, None));
        self.enlist_socket(stream);
    }
}
