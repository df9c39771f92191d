//! An address of 198.18.0.0/15 for every name, so that the address of a connection says which name was meant, also
//! for names that share one outside. As many names as fit in a bounded table; the one that was not used for the
//! longest time makes room.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
};

use crate::rules::NETWORK_DNS_NAMES;

const BASE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// The first addresses are the gateway's; the last is left alone.
const FIRST: u32 = 16;
const LAST: u32 = (1 << 17) - 2;

struct Entry {
    offset: u32,
    used: u64,
}

pub struct Names {
    by_name: HashMap<Box<str>, Entry>,
    by_offset: HashMap<u32, Box<str>>,
    /// Oldest first.
    by_use: BTreeMap<u64, u32>,
    clock: u64,
    next: u32,
    capacity: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self::with_capacity(NETWORK_DNS_NAMES)
    }
}

impl Names {
    fn with_capacity(capacity: usize) -> Self {
        let (by_name, by_offset, by_use) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { by_name, by_offset, by_use, clock: 0, next: FIRST, capacity }
    }

    /// The address of a name, which is in lower case.
    pub fn address(&mut self, name: &str) -> Ipv4Addr {
        if let Some(entry) = self.by_name.get_mut(name) {
            self.clock += 1;
            self.by_use.remove(&entry.used);
            entry.used = self.clock;
            self.by_use.insert(self.clock, entry.offset);
            return Ipv4Addr::from(BASE + entry.offset);
        }
        if self.by_name.len() >= self.capacity {
            self.forget_oldest();
        }
        let offset = self.free_offset();
        self.clock += 1;
        self.by_name.insert(name.into(), Entry { offset, used: self.clock });
        self.by_offset.insert(offset, name.into());
        self.by_use.insert(self.clock, offset);
        Ipv4Addr::from(BASE + offset)
    }

    /// The name that an address was given to, if it is one of ours and not forgotten.
    pub fn name(&mut self, address: Ipv4Addr) -> Option<&str> {
        let name = self.by_offset.get(&offset_of(address)?)?;
        let entry = self.by_name.get_mut(name)?;
        self.clock += 1;
        self.by_use.remove(&entry.used);
        entry.used = self.clock;
        self.by_use.insert(self.clock, entry.offset);
        Some(name)
    }

    /// Addresses are used in turn: one is given to another name as late as possible.
    fn free_offset(&mut self) -> u32 {
        loop {
            let offset = self.next;
            self.next = if offset == LAST { FIRST } else { offset + 1 };
            if !self.by_offset.contains_key(&offset) {
                return offset;
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, offset)) = self.by_use.pop_first() {
            if let Some(name) = self.by_offset.remove(&offset) {
                self.by_name.remove(&name);
            }
        }
    }
}

/// Whether an address stands for a name and never for itself.
pub fn is_synthetic(address: Ipv4Addr) -> bool {
    offset_of(address).is_some()
}

fn offset_of(address: Ipv4Addr) -> Option<u32> {
    u32::from(address).checked_sub(BASE).filter(|offset| *offset < 1 << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_an_address_of_its_own_and_keeps_it() {
        let mut names = Names::default();
        let (one, other) = (names.address("one.example"), names.address("other.example"));
        assert_ne!(one, other);
        assert_eq!(names.address("one.example"), one);
        assert_eq!(names.name(one), Some("one.example"));
        assert_eq!(names.name(other), Some("other.example"));
        assert_eq!(names.name(Ipv4Addr::new(198, 18, 0, 1)), None);
        assert_eq!(names.name(Ipv4Addr::new(8, 8, 8, 8)), None);
        assert!(is_synthetic(one) && is_synthetic(Ipv4Addr::new(198, 19, 255, 255)));
        assert!(!is_synthetic(Ipv4Addr::new(198, 20, 0, 0)) && !is_synthetic(Ipv4Addr::new(198, 17, 255, 255)));
    }

    #[test]
    fn a_flood_of_names_forgets_the_oldest_and_reuses_addresses_late() {
        let mut names = Names::with_capacity(100);
        let kept = names.address("kept.example");
        let first = names.address("first.example");
        for number in 0..1000 {
            let address = names.address(&format!("{number}.example"));
            assert_ne!(address, first);
            assert_eq!(names.name(kept), Some("kept.example"));
        }
        assert_eq!(names.by_name.len(), 100);
        assert_eq!(names.by_offset.len(), 100);
        assert_eq!(names.by_use.len(), 100);
        assert_eq!(names.name(first), None);
    }

    #[test]
    fn going_round_finds_only_free_addresses() {
        let mut names = Names::with_capacity(10);
        let kept = names.address("kept");
        names.next = LAST - 2;
        for number in 0..40 {
            names.name(kept);
            let address = names.address(&format!("n{number}"));
            assert_ne!(address, kept);
            assert!(u32::from(address) - BASE >= FIRST);
        }
    }
}
