//! The same redirect as in `redirect`, for gVisor's kernel, which knows iptables' tables and no nftables. The whole table is
//! written at once, as the iptables program would.

use rustix::{
    io,
    net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with},
};

use crate::{rules::NETWORK_TRANSPARENT_PORT, sys::iptables::replace_table};

/// Where a packet can meet the table, by the kernel's numbers.
const PREROUTING: usize = 0;
const INPUT: usize = 1;
const OUTPUT: usize = 3;
const POSTROUTING: usize = 4;
const HOOKS: usize = 5;

const NAME_BYTES: usize = 32;
const ENTRY_BYTES: u16 = 112;
const TARGET_NAME_BYTES: usize = 29;
const ACCEPT: i32 = -2;
const TCP: u16 = 6;
const PORT_GIVEN: u32 = 2;

/// Sets the rules, all or none. Needs CAP_NET_ADMIN and CAP_NET_RAW.
pub fn set(gateway: [u8; 4]) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW))?;
    replace_table(&socket, &nat_table(gateway).encode())
}

/// TCP, and neither to loopback nor to the sandbox's own address: to the listener.
fn nat_table(gateway: [u8; 4]) -> Table {
    let mut table = Table::default();
    table.chain(PREROUTING, &[]);
    table.chain(INPUT, &[]);
    let stays = [entry([127, 0, 0, 0], [255, 0, 0, 0], 0, &accept()), entry(gateway, [255; 4], 0, &accept())];
    let goes = entry([0; 4], [0; 4], TCP, &redirect(NETWORK_TRANSPARENT_PORT as u16));
    table.chain(OUTPUT, &[&stays[0], &stays[1], &goes]);
    table.chain(POSTROUTING, &[]);
    table.push(&entry([0; 4], [0; 4], 0, &target("ERROR", &text::<30>("ERROR"))));
    table
}

#[derive(Default)]
struct Table {
    entries: Vec<u8>,
    count: u32,
    /// Of each hook: where its rules begin, and where the last of them is.
    begins: [u32; HOOKS],
    ends: [u32; HOOKS],
    hooks: u32,
}

impl Table {
    /// Rules, and at their end that everything passes.
    fn chain(&mut self, hook: usize, rules: &[&[u8]]) {
        self.hooks |= 1 << hook;
        self.begins[hook] = self.entries.len() as u32;
        for rule in rules {
            self.push(rule);
        }
        self.ends[hook] = self.entries.len() as u32;
        self.push(&entry([0; 4], [0; 4], 0, &accept()));
    }

    fn push(&mut self, entry: &[u8]) {
        self.entries.extend(entry);
        self.count += 1;
    }

    /// `struct ipt_replace`, without counters of what was there before.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = text::<NAME_BYTES>("nat").to_vec();
        for number in [self.hooks, self.count, self.entries.len() as u32] {
            bytes.extend(number.to_ne_bytes());
        }
        for number in self.begins.iter().chain(&self.ends) {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend([0; 4 + 8]);
        bytes.extend(&self.entries);
        bytes
    }
}

/// `struct ipt_entry`: to which addresses and by which protocol (0: any), and what becomes of it.
fn entry(destination: [u8; 4], mask: [u8; 4], protocol: u16, target: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(destination);
    bytes.extend([0; 4]);
    bytes.extend(mask);
    // Devices and their masks.
    bytes.extend([0; 64]);
    bytes.extend(protocol.to_ne_bytes());
    bytes.extend([0; 2 + 4]);
    bytes.extend(ENTRY_BYTES.to_ne_bytes());
    bytes.extend((ENTRY_BYTES + target.len() as u16).to_ne_bytes());
    bytes.resize(ENTRY_BYTES.into(), 0);
    bytes.extend(target);
    bytes
}

fn accept() -> Vec<u8> {
    target("", &ACCEPT.to_ne_bytes())
}

fn redirect(port: u16) -> Vec<u8> {
    let mut range = 1u32.to_ne_bytes().to_vec();
    range.extend(PORT_GIVEN.to_ne_bytes());
    range.extend([0; 8]);
    range.extend(port.to_be_bytes());
    range.extend(port.to_be_bytes());
    target("REDIRECT", &range)
}

/// `struct xt_entry_target` and what belongs to it, in whole words.
fn target(name: &str, data: &[u8]) -> Vec<u8> {
    let length = (2 + TARGET_NAME_BYTES + 1 + data.len()).next_multiple_of(8);
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(text::<TARGET_NAME_BYTES>(name));
    bytes.push(0);
    bytes.extend(data);
    bytes.resize(length, 0);
    bytes
}

fn text<const N: usize>(value: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..value.len()].copy_from_slice(value.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_laid_out_as_the_kernel_reads_it() {
        let table = nat_table([198, 18, 0, 1]);
        let bytes = table.encode();
        assert_eq!(bytes.len(), 96 + table.entries.len());
        assert_eq!((accept().len(), redirect(1).len()), (40, 56));
        assert_eq!(table.count, 8);
        assert_eq!(table.begins, [0, 152, 0, 304, 304 + 2 * 152 + 168 + 152]);
        assert_eq!(table.ends[OUTPUT] - table.begins[OUTPUT], 2 * 152 + 168);
    }
}
