//! The sockets on which programs are met: the proxy port, connections to anywhere, and names. Opened while the guest
//! may still use the ports below 1024, and never shared: without SO_REUSEPORT nobody can join them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::{
    io,
    net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt},
};

use crate::{
    proto::link::Hold,
    rules::{NETWORK_PROXY_PORT, NETWORK_TRANSPARENT_PORT},
    wall::FALLBACK_PORTS,
};

pub const DNS_PORT: u16 = 53;
const BACKLOG: i32 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Proxy,
    /// Behind the kernel's redirect, which remembers where a connection was going.
    Redirected,
    /// On every address: where a connection was going is its own address.
    AnyAddress,
    NamesTcp,
}

pub struct Listener {
    pub fd: OwnedFd,
    pub role: Role,
}

#[derive(Default)]
pub struct Listeners {
    pub tcp: Vec<Listener>,
    pub names: Option<OwnedFd>,
    /// Why something is missing.
    trouble: Option<String>,
}

impl Listeners {
    /// Opens what can be opened.
    pub fn open(every_port: bool) -> Self {
        let mut listeners = Self::default();
        let local = |port: u16| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        listeners.add(Role::Proxy, local(NETWORK_PROXY_PORT as u16));
        if every_port {
            listeners.add(Role::Redirected, local(NETWORK_TRANSPARENT_PORT as u16));
        } else {
            for port in FALLBACK_PORTS {
                listeners.add(Role::AnyAddress, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
            }
        }
        listeners.add(Role::NamesTcp, local(DNS_PORT));
        match bound(SocketType::DGRAM, local(DNS_PORT)) {
            Ok(fd) => listeners.names = Some(fd),
            Err(errno) => listeners.trouble = Some(format!("port 53: {errno}")),
        }
        listeners
    }

    fn add(&mut self, role: Role, address: SocketAddrV4) {
        let opened = bound(SocketType::STREAM, address).and_then(|fd| listen(&fd, BACKLOG).map(|()| fd));
        match opened {
            Ok(fd) => self.tcp.push(Listener { fd, role }),
            Err(errno) => self.trouble = Some(format!("port {}: {errno}", address.port())),
        }
    }

    pub fn has_proxy(&self) -> bool {
        self.tcp.iter().any(|listener| listener.role == Role::Proxy)
    }

    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        self.tcp.iter().map(|listener| &listener.fd).chain(&self.names).map(|fd| fd.as_raw_fd())
    }

    /// For the enforcement report: the ways out that there are.
    pub fn hold(&self) -> Hold {
        let detail = format!("proxy on 127.0.0.1:{NETWORK_PROXY_PORT}, names on 127.0.0.1:53");
        let (enforced, detail) = match &self.trouble {
            None => (true, detail),
            Some(trouble) => (false, trouble.clone()),
        };
        Hold { name: "network.door".into(), enforced, by: "guest".into(), detail }
    }
}

/// Where a connection that a listener has accepted was going. Nothing when it was meant for the listener itself.
pub fn destination(role: Role, socket: &OwnedFd) -> io::Result<Option<SocketAddrV4>> {
    let target = match role {
        Role::Proxy | Role::NamesTcp => return Ok(None),
        Role::Redirected => sockopt::ip_original_dst(socket)?,
        Role::AnyAddress => SocketAddrV4::try_from(getsockname(socket)?)?,
    };
    Ok((!target.ip().is_loopback()).then_some(target))
}

fn bound(kind: SocketType, address: SocketAddrV4) -> io::Result<OwnedFd> {
    let fd = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    bind(&fd, &address)?;
    Ok(fd)
}
