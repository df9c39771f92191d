//! Every TCP connection that leaves loopback ends at the guest's own listener, whatever its port: a `redirect` of
//! nftables in the sandbox's network namespace, spoken directly, because no program for it may be there.

use std::os::fd::OwnedFd;

use rustix::{
    io::{self, Errno},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink},
};

use crate::rules::NETWORK_TRANSPARENT_PORT;

const TABLE: &str = "caisson";
const NAT_CHAIN: &str = "redirect";
const RAW_CHAIN: &str = "untracked";

const SUBSYSTEM: u16 = 10 << 8;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const NLMSG_ERROR: u16 = 2;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;

const LOCAL_OUT: u32 = 3;
/// Before connections are tracked, and where destinations are rewritten.
const PRIORITY_RAW: i32 = -300;
const PRIORITY_NAT: i32 = -100;

const REGISTER: u32 = 1;
const META_L4PROTO: u32 = 16;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const TCP: u8 = 6;
const LOOPBACK: u8 = 127;

/// Sets the rules, all or none.
pub fn set(gateway: [u8; 4]) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )?;
    let requests = [
        (NEW_TABLE, CREATE, text(1, TABLE)),
        (NEW_CHAIN, CREATE, chain(RAW_CHAIN, "filter", PRIORITY_RAW)),
        (NEW_RULE, CREATE | APPEND, rule(RAW_CHAIN, &untracked())),
        (NEW_CHAIN, CREATE, chain(NAT_CHAIN, "nat", PRIORITY_NAT)),
        (NEW_RULE, CREATE | APPEND, rule(NAT_CHAIN, &redirected(gateway))),
    ];
    let mut batch = message(BATCH_BEGIN, REQUEST, [0, 0, 0, 10], &[]);
    for (kind, flags, body) in &requests {
        batch.extend(message(*kind, REQUEST | ACK | flags, [libc::AF_INET as u8, 0, 0, 0], body));
    }
    batch.extend(message(BATCH_END, REQUEST, [0, 0, 0, 10], &[]));
    rustix::net::send(&socket, &batch, SendFlags::empty())?;
    acknowledged(&socket, requests.len())
}

/// TCP, and neither to loopback nor to the sandbox's own address: to the listener.
fn redirected(gateway: [u8; 4]) -> Vec<u8> {
    let port = (NETWORK_TRANSPARENT_PORT as u16).to_be_bytes();
    [
        expression("meta", &[number(1, REGISTER), number(2, META_L4PROTO)].concat()),
        compare(EQUAL, &[TCP]),
        load(NETWORK_HEADER, 16, 1),
        compare(NOT_EQUAL, &[LOOPBACK]),
        load(NETWORK_HEADER, 16, 4),
        compare(NOT_EQUAL, &gateway),
        expression("immediate", &[number(1, REGISTER), nested(2, &attribute(1, &port))].concat()),
        expression("redir", &number(1, REGISTER)),
    ]
    .concat()
}

/// What stays on loopback is not tracked: it costs nothing then, and cannot fill the kernel's table. What the
/// listener says may be the answer to a connection that was redirected.
fn untracked() -> Vec<u8> {
    let port = (NETWORK_TRANSPARENT_PORT as u16).to_be_bytes();
    [
        load(NETWORK_HEADER, 12, 1),
        compare(EQUAL, &[LOOPBACK]),
        load(NETWORK_HEADER, 16, 1),
        compare(EQUAL, &[LOOPBACK]),
        load(TRANSPORT_HEADER, 0, 2),
        compare(NOT_EQUAL, &port),
        expression("notrack", &[]),
    ]
    .concat()
}

fn chain(name: &str, kind: &str, priority: i32) -> Vec<u8> {
    let hook = [number(1, LOCAL_OUT), number(2, priority as u32)].concat();
    [text(1, TABLE), text(3, name), nested(4, &hook), text(7, kind)].concat()
}

fn rule(chain: &str, expressions: &[u8]) -> Vec<u8> {
    [text(1, TABLE), text(2, chain), nested(4, expressions)].concat()
}

fn expression(name: &str, data: &[u8]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, data)].concat())
}

/// Bytes of a header into the register.
fn load(base: u32, offset: u32, length: u32) -> Vec<u8> {
    expression("payload", &[number(1, REGISTER), number(2, base), number(3, offset), number(4, length)].concat())
}

fn compare(operation: u32, value: &[u8]) -> Vec<u8> {
    let data = [number(1, REGISTER), number(2, operation), nested(3, &attribute(1, value))];
    expression("cmp", &data.concat())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), b"\0"].concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, inner)
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// A message with the header of nfnetlink: family, version, resource.
fn message(kind: u16, flags: u16, family: [u8; 4], body: &[u8]) -> Vec<u8> {
    let length = HEADER + family.len() + body.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(family);
    bytes.extend(body);
    bytes
}

/// Reads as many acknowledgements as there were requests, or the first error.
fn acknowledged(socket: &OwnedFd, mut expected: usize) -> io::Result<()> {
    let mut buffer = [0u8; 8192];
    while expected > 0 {
        let (received, _) = rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = &buffer[..received];
        while rest.len() >= HEADER + 4 {
            let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            if length < HEADER + 4 || length > rest.len() || u16::from_ne_bytes([rest[4], rest[5]]) != NLMSG_ERROR {
                return Err(Errno::BADMSG);
            }
            match i32::from_ne_bytes([rest[16], rest[17], rest[18], rest[19]]) {
                0 => expected = expected.saturating_sub(1),
                code => return Err(Errno::from_raw_os_error(-code)),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_say_their_length_without_it() {
        assert_eq!(attribute(1, b"ab"), [6, 0, 1, 0, b'a', b'b', 0, 0]);
        assert_eq!(text(2, "abc"), [8, 0, 2, 0, b'a', b'b', b'c', 0]);
        assert_eq!(number(3, 7), [8, 0, 3, 0, 0, 0, 0, 7]);
        assert_eq!(nested(1, &[])[..4], [4, 0, 1, 0x80]);
    }
}
