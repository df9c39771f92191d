//! The TCP ports that programs listen on, by what /proc says. Programs can make its files long: no more is read than
//! a bound allows.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Read,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::listeners::DNS_PORT;
use crate::{
    proto::link::ListeningPort,
    rules::{NETWORK_PROXY_PORT, NETWORK_TRANSPARENT_PORT},
    wall::{FALLBACK_PORTS, catches_every_port},
};

const MAX_TABLE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_PORTS: usize = 1024;
/// Descriptors that are looked at to find out whose a socket is.
const MAX_LOOKS: usize = 20_000;
const STATE_LISTEN: &str = "0A";

struct Socket {
    address: IpAddr,
    port: u16,
    inode: u64,
}

/// Whether a port is one of the guest's own, which nobody reaches from outside.
pub fn is_own(port: u16) -> bool {
    let own = [NETWORK_PROXY_PORT as u16, NETWORK_TRANSPARENT_PORT as u16, DNS_PORT];
    own.contains(&port) || (FALLBACK_PORTS.contains(&port) && !catches_every_port())
}

/// In the order of their numbers, each address once.
pub fn list() -> Vec<ListeningPort> {
    let mut sockets: Vec<Socket> = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(read_table).collect();
    sockets.retain(|socket| !is_own(socket.port));
    sockets.sort_by_key(|socket| (socket.port, socket.address));
    sockets.dedup_by_key(|socket| (socket.port, socket.address));
    sockets.truncate(MAX_PORTS);
    let mut owners = if sockets.is_empty() { HashMap::new() } else { owners(&sockets) };
    let port = |socket: Socket| {
        let (pid, command) = owners.remove(&socket.inode).unwrap_or_default();
        ListeningPort { port: socket.port.into(), address: socket.address.to_string(), pid, command }
    };
    sockets.into_iter().map(port).collect()
}

fn read_table(path: &str) -> Vec<Socket> {
    let mut text = String::new();
    // A kernel without IPv6 has no second table.
    let _ = File::open(path).and_then(|file| file.take(MAX_TABLE_BYTES).read_to_string(&mut text));
    text.lines().skip(1).filter_map(parse).collect()
}

/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`
fn parse(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    if fields.nth(1)? != STATE_LISTEN {
        return None;
    }
    let inode = fields.nth(5)?.parse().ok()?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
        }
        _ => return None,
    };
    Some(Socket { address, port, inode })
}

/// Who holds each socket: the first process that is found with it.
fn owners(sockets: &[Socket]) -> HashMap<u64, (u32, String)> {
    let mut found = HashMap::new();
    let mut looks = 0;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == std::process::id() {
            continue;
        }
        for descriptor in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            looks += 1;
            if looks > MAX_LOOKS || found.len() == sockets.len() {
                return found;
            }
            let Ok(target) = fs::read_link(descriptor.path()) else { continue };
            let inode = target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']'));
            let Some(inode) = inode.and_then(|inode| inode.parse().ok()) else { continue };
            if sockets.iter().any(|socket| socket.inode == inode) {
                found.entry(inode).or_insert_with(|| (pid, command_of(pid)));
            }
        }
    }
    found
}

/// The name that the process gave itself: at most fifteen bytes, made harmless where they are shown.
fn command_of(pid: u32) -> String {
    fs::read(format!("/proc/{pid}/comm"))
        .map(|name| String::from_utf8_lossy(&name).trim_end().into())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let line =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0";
        let socket = parse(line).unwrap();
        assert_eq!((socket.address.to_string().as_str(), socket.port, socket.inode), ("127.0.0.1", 8080, 4242));
        let six = "1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 7 1";
        assert_eq!(parse(six).unwrap().address.to_string(), "::1");
        assert!(parse(&line.replace(" 0A ", " 01 ")).is_none());
        for end in 0..line.len() {
            let _ = parse(&line[..end]);
        }
    }

    #[test]
    fn a_listening_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = u32::from(listener.local_addr().unwrap().port());
        assert!(list().iter().any(|found| found.port == port && found.address == "127.0.0.1"));
    }
}
