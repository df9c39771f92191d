//! What /proc says about a process on the host.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// State, parent, session and start time in clock ticks.
#[derive(Debug, PartialEq)]
pub struct Stat {
    pub state: u8,
    pub parent: i32,
    pub session: i32,
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
        session: fields.get(3)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// The children of a process, each held by a descriptor that names it for ever.
pub fn children(parent: i32) -> Vec<OwnedFd> {
    let is_child = |stat: &Stat| stat.parent == parent;
    children_numbers(parent).into_iter().filter_map(|pid| held_if(pid, is_child)).collect()
}

/// Of all its threads; by looking at every process where the kernel keeps no list.
pub fn children_numbers(parent: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists: Option<Vec<String>> =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).ok()).collect();
    match lists {
        Some(lists) => {
            lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
        }
        None => all().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect(),
    }
}

/// Every PID 1 of some process namespace that belongs to a session. The kernel gives the session's
/// number to nobody else as long as one is there, also after the process that had it first is gone.
pub fn inits_of_session(session: i32) -> Vec<OwnedFd> {
    let belongs = |stat: &Stat| stat.session == session && stat.state != b'Z';
    all().filter(|pid| *pid != session && is_namespace_init(*pid)).filter_map(|pid| held_if(pid, belongs)).collect()
}

/// A descriptor of a process for which something holds.
fn held_if(pid: i32, holds: impl Fn(&Stat) -> bool) -> Option<OwnedFd> {
    let held = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // Asked after it was opened: were the number another process's by now, the answer would be too.
    holds(&stat(pid)?).then_some(held)
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Its numbers in all process namespaces that it is in, the host's first; the last is its own's.
fn is_namespace_init(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| {
        let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
        numbers.len() > 1 && numbers.last() == Some(&"1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"42 (a) S 7 (b)) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(parse(text), Some(Stat { state: b'S', parent: 1, session: 42, start_time: 987654 }));
    }

    #[test]
    fn a_living_process_is_its_parents_child() {
        let own = stat(std::process::id() as i32).unwrap();
        assert!(own.start_time > 0);
        assert_eq!(Some(own.parent), rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()));
    }
}
