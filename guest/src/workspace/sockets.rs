//! Sockets in a project: a writable bind would let commands connect to them.

use std::{ffi::OsStr, os::fd::OwnedFd};

use rustix::{
    fs::{self, FileType},
    io::Errno,
};

use super::{Answers, JobError, beneath, whole};
use crate::proto::keeper::{ApplyOutcome, JobDone, SocketsJob, workspace_message::Message as Answer};

pub fn run(project: &OwnedFd, job: &SocketsJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let mut search = Search { device: fs::fstat(project)?.st_dev, most: job.most as usize, found: Vec::new() };
    search.look(project, b"")?;
    let count = search.found.len() as u64;
    for path in search.found {
        answers.tell(Answer::Outcome(ApplyOutcome { path, ..ApplyOutcome::default() }))?;
    }
    Ok(JobDone { count, ..JobDone::default() })
}

struct Search {
    device: u64,
    most: usize,
    found: Vec<Vec<u8>>,
}

impl Search {
    fn look(&mut self, dir: &OwnedFd, path: &[u8]) -> Result<(), JobError> {
        for name in beneath::names(dir)? {
            if self.found.len() >= self.most {
                return Ok(());
            }
            let inner = beneath::join(path, &name);
            self.entry(dir, &name, &inner).map_err(|error| whole::named(error, &inner))?;
        }
        Ok(())
    }

    /// What cannot be looked into is an error: commands may know a socket's name in it.
    fn entry(&mut self, dir: &OwnedFd, name: &OsStr, path: &[u8]) -> Result<(), JobError> {
        let Some(stat) = beneath::stat(dir, name)? else { return Ok(()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => self.found.push(path.to_vec()),
            FileType::Directory if stat.st_dev != self.device => return Err(whole::nested()),
            FileType::Directory => match beneath::open_directory(dir, name.as_encoded_bytes()) {
                Ok(inner) => self.look(&inner, path)?,
                // The host removed it, or put something else there.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            },
            _ => {}
        }
        Ok(())
    }
}
