//! Keeping the memory of a machine that stands still. Its process has mapped sealed memory privately: what it has written
//! since are pages of its own, all others are still the sealed ones.

use std::{
    fs::{self, File},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags, SeekFrom, ftruncate, open, seek},
    io::Errno,
};

use super::{
    failure::Failure,
    handed::{MEMORY_NAME, seal_memory},
    pages::{PAGE, PIECE, write_pages},
};
use crate::proto::keeper::{KeepMemory, MemoryKept, keeper_reply::Reply};

/// Of an entry of /proc/PID/pagemap.
const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_A_FILE: u64 = 1 << 61;

/// A part of the machine's memory, where its process has it.
struct Part {
    begin: u64,
    length: u64,
    /// Of its beginning in the machine's memory.
    at: u64,
}

struct Machine {
    /// Of its process, in /proc.
    place: String,
    parts: Vec<Part>,
    /// What it began with.
    sealed: File,
}

/// In a worker: into a new file, or into memory that is then sealed.
pub fn keep_memory(outer: i32, request: &KeepMemory, held: Option<&str>) -> Result<Reply, Failure> {
    let failed = |doing: &str, errno| Failure::errno("SANDBOX_FAILED", format!("keeping the memory: {doing}"), errno);
    let machine = find(outer).ok_or_else(|| Failure::new("SANDBOX_FAILED", "there is no machine in the sandbox"))?;
    if !machine.has_size(request.size) {
        return Err(Failure::new("SANDBOX_FAILED", "the machine's memory is not what it was made with"));
    }
    let into = match held {
        Some(memory) => open(memory, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()),
        None => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            open(&request.path, flags, Mode::from_raw_mode(0o600))
        }
    }
    .map_err(|errno| failed("making a file", errno))?;
    let bytes = machine.copy(&into, request.size).map_err(|errno| failed("copying", errno))?;
    if held.is_some() {
        seal_memory(&into).map_err(|errno| failed("sealing", errno))?;
    }
    Ok(Reply::MemoryKept(MemoryKept { bytes }))
}

impl Machine {
    /// Its process may have been taken over: what it shows as its memory is bounded.
    fn has_size(&self, size: u64) -> bool {
        let all: u128 = self.parts.iter().map(|part| u128::from(part.length)).sum();
        let fits = |part: &Part| part.at.checked_add(part.length).is_some_and(|end| end <= size);
        all == u128::from(size)
            && self.parts.iter().all(fits)
            && self.sealed.metadata().is_ok_and(|it| it.len() == size)
    }

    fn copy(&self, into: &OwnedFd, size: u64) -> Result<u64, Errno> {
        ftruncate(into, size)?;
        let memory = File::open(format!("{}/mem", self.place)).map_err(errno)?;
        let pagemap = File::open(format!("{}/pagemap", self.place)).map_err(errno)?;
        let mut bytes = 0;
        let (mut entries, mut buffer) = (vec![0; PIECE / PAGE * ENTRY], vec![0; PIECE]);
        for part in &self.parts {
            for offset in (0..part.length).step_by(PIECE) {
                let length = PIECE.min((part.length - offset) as usize);
                let entries = &mut entries[..length / PAGE * ENTRY];
                pagemap.read_exact_at(entries, (part.begin + offset) / PAGE as u64 * ENTRY as u64).map_err(errno)?;
                for run in runs(entries) {
                    let (begin, length) = (offset + (run.first * PAGE) as u64, run.count * PAGE);
                    let (buffer, at) = (&mut buffer[..length], part.at + begin);
                    if run.is_own {
                        memory.read_exact_at(buffer, part.begin + begin).map_err(errno)?;
                    } else if self.has_data(at, length)? {
                        self.sealed.read_exact_at(buffer, at).map_err(errno)?;
                    } else {
                        continue;
                    }
                    bytes += write_pages(into, buffer, at)?;
                }
            }
        }
        Ok(bytes)
    }

    /// Is there anything but a hole?
    fn has_data(&self, at: u64, length: usize) -> Result<bool, Errno> {
        match seek(self.sealed.as_fd(), SeekFrom::Data(at)) {
            Ok(data) => Ok(data < at + length as u64),
            Err(Errno::NXIO) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

struct Run {
    first: usize,
    count: usize,
    /// Written by the machine.
    is_own: bool,
}

/// Neighbours of one kind.
fn runs(entries: &[u8]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, entry) in entries.chunks_exact(ENTRY).enumerate() {
        let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
        let is_own = entry & SWAPPED != 0 || (entry & PRESENT != 0 && entry & OF_A_FILE == 0);
        match runs.last_mut() {
            Some(run) if run.is_own == is_own => run.count += 1,
            _ => runs.push(Run { first: index, count: 1, is_own }),
        }
    }
    runs
}

/// Among a process and those that it started.
fn find(outer: i32) -> Option<Machine> {
    let mut waiting = vec![outer];
    while let Some(pid) = waiting.pop() {
        let place = format!("/proc/{pid}");
        let maps = fs::read_to_string(format!("{place}/maps")).unwrap_or_default();
        let parts: Vec<Part> = maps.lines().filter_map(read_part).collect();
        if !parts.is_empty() {
            let sealed = sealed_of(&place)?;
            return Some(Machine { place, parts, sealed });
        }
        for task in fs::read_dir(format!("{place}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
        }
    }
    None
}

/// The name by which /proc shows sealed memory of ours.
fn shown_name() -> String {
    format!("/memfd:{} (deleted)", MEMORY_NAME.to_string_lossy())
}

/// `BEGIN-END PERMISSIONS OFFSET DEVICE INODE NAME`
fn read_part(line: &str) -> Option<Part> {
    let name = line.split_once('/').map(|(_, name)| format!("/{name}"))?;
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let is_private = words.next()?.ends_with('p');
    let at = u64::from_str_radix(words.next()?, 16).ok()?;
    (is_private && name == shown_name()).then_some(Part { begin, length: end - begin, at })
}

/// The process has it open.
fn sealed_of(place: &str) -> Option<File> {
    let is_it = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.to_str() == Some(&shown_name()));
    let mut paths = fs::read_dir(format!("{place}/fd")).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    File::open(paths.find(is_it)?).ok()
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_part_of_a_machine_by_its_name_and_kind() {
        let line = |kind: &str, name: &str| format!("7f00-8f00 rw-{kind} 00001000 00:01 99   {name}");
        let part = read_part(&line("p", "/memfd:caisson-memory (deleted)")).unwrap();
        assert_eq!((part.begin, part.length, part.at), (0x7f00, 0x1000, 0x1000));
        assert!(read_part(&line("s", "/memfd:caisson-memory (deleted)")).is_none());
        assert!(read_part(&line("p", "/memfd:caisson-memory2 (deleted)")).is_none());
        assert!(read_part("7f00-8f00 rw-p 00000000 00:00 0").is_none());
    }

    #[test]
    fn pages_are_the_machines_own_once_it_has_written_them() {
        let entries = [0, PRESENT | OF_A_FILE, PRESENT, SWAPPED, PRESENT | OF_A_FILE].map(u64::to_ne_bytes);
        let runs: Vec<_> = runs(entries.as_flattened()).iter().map(|run| (run.first, run.count, run.is_own)).collect();
        assert_eq!(runs, [(0, 2, false), (2, 2, true), (4, 1, false)]);
    }
}
