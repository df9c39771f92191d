//! The sandbox's own network namespace: loopback up, with the address that the egress gateway uses.
//! There is no other device, ever; what may leave is decided on the host.

use std::{os::fd::OwnedFd, sync::OnceLock};

use rustix::{
    io::{self, Errno},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType},
};

use super::{
    iptables, redirect,
    report::Report,
    step::{During, SealError, Step},
};

/// Where names get their synthetic addresses; also what makes `getaddrinfo` believe in IPv4.
const GATEWAY: ([u8; 4], u8) = ([198, 18, 0, 1], 15);
/// An address whose network is all of IPv4, for a kernel that has no local routes.
const EVERYWHERE: ([u8; 4], u8) = ([198, 18, 0, 2], 0);

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x400;
const UP: u32 = 0x1;
const LOOPBACK: u32 = 0x8;
/// The first device of every network namespace.
const LOOPBACK_INDEX: i32 = 1;
const HEADER: usize = 16;

/// Where the kernel cannot redirect: the ports that listeners stand for. None that a program inside would use, since
/// it could not any more.
pub const FALLBACK_PORTS: [u16; 4] = [22, 80, 443, 9418];

/// What became of the route and of the redirect. Set once: the rules would be there twice otherwise.
static ROUTE: OnceLock<Result<(), Errno>> = OnceLock::new();
static REDIRECT: OnceLock<Result<&str, Errno>> = OnceLock::new();

/// Whether connections to every port are caught.
pub fn catches_every_port() -> bool {
    REDIRECT.get().is_some_and(|result| result.is_ok())
}

pub fn prepare() -> Result<(), SealError> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is number 0, the default.
        None,
    )
    .during(Step::Network, "a netlink socket")?;
    match raise_loopback(&socket) {
        // gVisor cannot, and has it up from the beginning.
        Err(Errno::OPNOTSUPP) if is_loopback_up(&socket).during(Step::Network, "listing devices")? => {}
        other => other.during(Step::Network, "loopback")?,
    }
    add_address(&socket, GATEWAY).map_err(|errno| Step::Network.error(format!("198.18.0.1/15: {errno}")))?;
    let others = other_devices_up(&socket).during(Step::Network, "listing devices")?;
    if others > 0 {
        return Err(Step::Network.error("the network namespace has a device beside loopback"));
    }
    let _ = ROUTE.get_or_init(|| catch_all_addresses(&socket).or_else(|_| add_address(&socket, EVERYWHERE)));
    let _ = REDIRECT.get_or_init(redirect_all_ports);
    Ok(())
}

/// To be called when `prepare` has succeeded.
pub fn report(report: &mut Report) {
    report.holds("network.none", "network namespace", "loopback is the only device");
    if let (Some(routed), Some(redirected)) = (ROUTE.get(), REDIRECT.get()) {
        report_transparent(routed, redirected, report);
    }
}

/// Names resolve to addresses that lead to the guest; what is said there is about programs that know no proxy.
fn report_transparent(routed: &io::Result<()>, redirected: &io::Result<&str>, report: &mut Report) {
    let name = "network.transparent";
    let literal = match routed {
        Ok(()) => "names and IPv4 addresses".to_owned(),
        Err(errno) => format!("names, not addresses ({errno})"),
    };
    match redirected {
        Ok(by) => report.holds(name, by, format!("every TCP port; {literal}")),
        Err(errno) => {
            let ports = FALLBACK_PORTS.map(|port| port.to_string()).join(", ");
            report.holds(name, "listeners", format!("TCP ports {ports} only (nftables: {errno}); {literal}"));
        }
    }
}

/// Returns by what means. The error is the one of nftables: gVisor alone has only iptables.
fn redirect_all_ports() -> io::Result<&'static str> {
    match redirect::set(GATEWAY.0) {
        Ok(()) => Ok("nftables redirect"),
        Err(errno) => iptables::set(GATEWAY.0).map(|()| "iptables redirect").map_err(|_| errno),
    }
}

/// A route by which every IPv4 address is one of this namespace's own: TCP can be caught then, and all else gets an
/// error at once instead of none.
fn catch_all_addresses(socket: &OwnedFd) -> io::Result<()> {
    // rtmsg: family, lengths of destination and source, tos, table local, protocol static, scope host, type local, flags
    let mut body = vec![2, 0, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0];
    // RTA_OIF
    body.extend(8u16.to_ne_bytes());
    body.extend(4u16.to_ne_bytes());
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    match call(socket, RTM_NEWROUTE, REQUEST | ACK | CREATE, &body) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn raise_loopback(socket: &OwnedFd) -> io::Result<()> {
    call(socket, RTM_NEWLINK, REQUEST | ACK, &link_info(UP, UP)).map(drop)
}

/// An address of loopback; nothing if it is there already.
fn add_address(socket: &OwnedFd, (address, prefix): ([u8; 4], u8)) -> io::Result<()> {
    // ifaddrmsg: family, prefix length, flags, scope, index
    let mut body = vec![2, prefix, 0, 0];
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    for attribute in [1u16, 2] {
        // IFA_ADDRESS, then IFA_LOCAL
        body.extend(8u16.to_ne_bytes());
        body.extend(attribute.to_ne_bytes());
        body.extend(address);
    }
    match call(socket, RTM_NEWADDR, REQUEST | ACK | CREATE, &body) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn is_loopback_up(socket: &OwnedFd) -> io::Result<bool> {
    let listed = call(socket, RTM_GETLINK, REQUEST | DUMP, &link_info(0, 0))?;
    let flags = listed.iter().filter_map(|message| Some(u32::from_ne_bytes(message.get(8..12)?.try_into().ok()?)));
    Ok(flags.into_iter().any(|flags| flags & LOOPBACK != 0 && flags & UP != 0))
}

fn other_devices_up(socket: &OwnedFd) -> io::Result<usize> {
    let mut others = 0;
    for message in call(socket, RTM_GETLINK, REQUEST | DUMP, &link_info(0, 0))? {
        let flags = message.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
        if flags.is_none_or(|flags| flags & UP != 0 && flags & LOOPBACK == 0) {
            others += 1;
        }
    }
    Ok(others)
}

/// ifinfomsg: family, padding, type, index, flags, mask of flags to change
fn link_info(flags: u32, change: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend(change.to_ne_bytes());
    body
}

/// Sends one request and returns the bodies of what it answers, without the final acknowledgement.
fn call(socket: &OwnedFd, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    rustix::net::send(socket, &request, SendFlags::empty())?;

    let mut answers = Vec::new();
    let mut buffer = vec![0u8; 32 * 1024];
    loop {
        let (received, _) = rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = &buffer[..received];
        while rest.len() >= HEADER {
            let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            if length < HEADER || length > rest.len() {
                return Err(Errno::BADMSG);
            }
            let body = &rest[HEADER..length];
            match u16::from_ne_bytes([rest[4], rest[5]]) {
                NLMSG_DONE => return Ok(answers),
                NLMSG_ERROR => {
                    let code = body.get(..4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
                    return match code.ok_or(Errno::BADMSG)? {
                        0 => Ok(answers),
                        code => Err(Errno::from_raw_os_error(-code)),
                    };
                }
                _ => answers.push(body.to_vec()),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
}
