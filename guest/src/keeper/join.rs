//! Moving a sandbox's processes into control groups while they start.

use std::{collections::HashSet, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, write},
};

use super::{failure::Failure, process};
use crate::proto::keeper::{Joined, keeper_reply::Reply};

/// In a worker. What a process starts after it was moved is in the groups from its birth, so that those are all which
/// are children when nothing new is found any more.
pub fn join(outer: i32, files: &[String]) -> Result<Reply, Failure> {
    let groups = files.iter().map(|file| procs_of(file)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut moved = HashSet::new();
    loop {
        let before = moved.len();
        let mut found = vec![outer];
        while let Some(pid) = found.pop() {
            if moved.insert(pid) {
                match groups.iter().try_for_each(|group| write(group, pid.to_string().as_bytes()).map(drop)) {
                    // It has ended meanwhile.
                    Err(Errno::SRCH) if pid != outer => {}
                    result => result.map_err(failed)?,
                }
            }
            found.extend(process::children_numbers(pid));
        }
        if moved.len() == before {
            return Ok(Reply::Joined(Joined {}));
        }
    }
}

pub fn procs_of(file: &str) -> Result<OwnedFd, Errno> {
    open(file, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn failed(errno: Errno) -> Failure {
    Failure::errno("SANDBOX_FAILED", "joining a cgroup", errno)
}
