//! The control groups of a sandbox, which its outer process is in from its first moment.
//!
//! To move another process, or a whole one with its threads, the kernel waits until every processor has passed a quiet moment: 5 ms and
//! more. A thread that moves itself does not wait, which the first version of groups allows; in the second a process can be born in its
//! group.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, write},
};

use super::failure::Failure;
use crate::sys::worker::{Forked, fork, fork_into};

#[derive(Default)]
pub struct Groups {
    /// Files to which a process with one thread writes that it joins.
    joined: Vec<OwnedFd>,
    /// Where a process is born: its directory, and the file by which it joins where it cannot be.
    birthplace: Option<(OwnedFd, OwnedFd)>,
}

impl Groups {
    /// By their files named cgroup.procs.
    pub fn open(files: &[String]) -> Result<Self, Failure> {
        let mut groups = Self::default();
        for file in files {
            groups.add(Path::new(file)).map_err(failed)?;
        }
        Ok(groups)
    }

    fn add(&mut self, procs: &Path) -> Result<(), Errno> {
        let directory = procs.parent().ok_or(Errno::INVAL)?;
        let writing = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Only the first version has it.
        match open(directory.join("tasks"), writing, Mode::empty()) {
            Ok(tasks) => self.joined.push(tasks),
            Err(Errno::NOENT) => {
                let place = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
                self.birthplace = Some((place, open(procs, writing, Mode::empty())?));
            }
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Forks this process, which has one thread. To be called once; the child then joins what it was not born in.
    pub fn fork(&mut self) -> Result<Forked, Errno> {
        if let Some((place, procs)) = self.birthplace.take() {
            match fork_into(place.as_fd()) {
                Ok(forked) => return Ok(forked),
                // A kernel, or a filter around this process, that does not have it; what else is wrong comes to light again.
                Err(_) => self.joined.push(procs),
            }
        }
        fork()
    }

    /// "0" is the writer itself, in both versions.
    pub fn join(&self) -> Result<(), Errno> {
        self.joined.iter().try_for_each(|file| write(file, b"0").map(drop))
    }
}

fn failed(errno: Errno) -> Failure {
    Failure::errno("SANDBOX_FAILED", "joining a cgroup", errno)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;
    use crate::sys::worker::exit_now;

    /// A directory that is no group at all: nobody can be born there.
    #[test]
    fn who_is_not_born_in_a_group_joins_it() {
        let directory = std::env::temp_dir().join(format!("caisson-groups-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let procs = directory.join("cgroup.procs");
        fs::write(&procs, "").unwrap();
        let mut groups = Groups::open(&[procs.to_str().unwrap().to_owned()]).unwrap();
        match groups.fork().unwrap() {
            Forked::Child => exit_now(i32::from(groups.join().is_err())),
            Forked::Parent(pid) => {
                let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
                assert_eq!(status.exit_status(), Some(0));
            }
        }
        assert_eq!(fs::read_to_string(&procs).unwrap(), "0");
        fs::remove_dir_all(&directory).unwrap();
        assert!(Groups::open(&["/nowhere/cgroup.procs".into()]).is_err());
    }
}
