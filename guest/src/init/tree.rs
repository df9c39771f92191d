//! Who is whose child, from /proc. A snapshot: processes come and go while it is taken, so what
//! must reach everybody repeats it.

use std::collections::{HashMap, HashSet};

use rustix::{
    fd::OwnedFd,
    fs::{self, Mode, OFlags, RawDir},
    io,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    /// It has ended and waits for its parent to notice.
    pub zombie: bool,
    /// Processor time of it and of its waited-for children, in clock ticks.
    pub ticks: u64,
    pub rss_pages: u64,
}

pub struct Snapshot {
    pub entries: Vec<Entry>,
}

impl Snapshot {
    pub fn take() -> Self {
        let mut entries = Vec::new();
        let Ok(proc) = open_proc() else { return Self { entries } };
        let mut contents = [0; 1024];
        for_each_pid(&proc, |name| {
            // A process that is gone by now is simply not there.
            let path = format!("{name}/stat");
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let Ok(file) = fs::openat(&proc, path, flags, Mode::empty()) else { return };
            let Ok(count) = io::read(&file, &mut contents) else { return };
            entries.extend(parse(&contents[..count]));
        });
        Self { entries }
    }

    /// Everything below `roots`, without them, zombies included.
    pub fn below(&self, roots: &[i32]) -> Vec<Entry> {
        let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
        for entry in &self.entries {
            children.entry(entry.parent).or_default().push(entry);
        }
        let mut seen: HashSet<i32> = roots.iter().copied().collect();
        let mut next = roots.to_vec();
        let mut found = Vec::new();
        while let Some(pid) = next.pop() {
            for child in children.get(&pid).into_iter().flatten() {
                if seen.insert(child.pid) {
                    next.push(child.pid);
                    found.push(**child);
                }
            }
        }
        found
    }
}

/// How many processes there are, by name alone.
pub fn count() -> usize {
    let mut count = 0;
    if let Ok(proc) = open_proc() {
        for_each_pid(&proc, |_| count += 1);
    }
    count
}

fn open_proc() -> io::Result<OwnedFd> {
    fs::open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn for_each_pid(proc: &OwnedFd, mut visit: impl FnMut(&str)) {
    let mut buffer = Vec::with_capacity(16 * 1024);
    let mut directory = RawDir::new(proc, buffer.spare_capacity_mut());
    while let Some(Ok(entry)) = directory.next() {
        if let Ok(name) = entry.file_name().to_str() {
            if name.bytes().all(|byte| byte.is_ascii_digit()) {
                visit(name);
            }
        }
    }
}

/// One line of /proc/PID/stat. The name in parentheses is the process's own choice and may contain
/// anything, so fields are counted from its last parenthesis.
fn parse(line: &[u8]) -> Option<Entry> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i64>().ok());
    let ticks = (11..=14).filter_map(number).map(|ticks| ticks.max(0) as u64).sum();
    Some(Entry {
        pid,
        parent: number(1)? as i32,
        group: number(2)? as i32,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        ticks,
        rss_pages: number(21)?.max(0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_fields() {
        let line = b"42 (a) S 1 1 1) (x) R 7 8 9 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99 1000 55 0\n";
        let expected = Entry { pid: 42, parent: 7, group: 8, zombie: false, ticks: 100, rss_pages: 55 };
        assert_eq!(parse(line), Some(expected));
        for end in 0..line.len() {
            let _ = parse(&line[..end]);
        }
        assert_eq!(parse(b")("), None);
    }

    #[test]
    fn this_process_is_below_its_parent() {
        let snapshot = Snapshot::take();
        let me = std::process::id() as i32;
        let parent = snapshot.entries.iter().find(|entry| entry.pid == me).unwrap().parent;
        assert!(snapshot.below(&[parent]).iter().any(|entry| entry.pid == me));
        assert!(snapshot.below(&[me]).iter().all(|entry| entry.pid != me));
        assert!(count() >= 1);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let entry = |pid, parent| Entry { pid, parent, group: 1, zombie: false, ticks: 0, rss_pages: 0 };
        let snapshot = Snapshot { entries: vec![entry(2, 3), entry(3, 2), entry(4, 3)] };
        assert_eq!(snapshot.below(&[2]).len(), 2);
    }
}
