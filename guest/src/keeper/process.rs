//! What /proc says about a process on the host.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// State, parent and start time in clock ticks.
#[derive(Debug, PartialEq)]
pub struct Stat {
    pub state: u8,
    pub parent: i32,
    pub start_time: u64,
}

pub fn stat(pid: i32) -> Option<Stat> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/stat")).ok()?.take(4096).read_to_end(&mut text).ok()?;
    parse(&text)
}

/// The program's name is in parentheses and can hold anything, more parentheses included.
fn parse(text: &[u8]) -> Option<Stat> {
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(&text[after_name..]).ok()?.split_ascii_whitespace().collect();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// The children of a process, each held by a descriptor that names it for ever.
pub fn children(parent: i32) -> Vec<OwnedFd> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| held_child(parent, pid.parse().ok()?)).collect()
}

/// A descriptor of a process, if it is this parent's child.
pub fn held_child(parent: i32, pid: i32) -> Option<OwnedFd> {
    let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // Asked after it was opened: were the number another process's by now, so would be its parent.
    (stat(pid)?.parent == parent).then_some(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"42 (a) S 7 (b)) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(parse(text), Some(Stat { state: b'S', parent: 1, start_time: 987654 }));
    }

    #[test]
    fn this_process_has_a_start_time() {
        let own = std::process::id() as i32;
        assert!(stat(own).unwrap().start_time > 0);
        assert_eq!(stat(own).unwrap().state, b'R');
    }
}
