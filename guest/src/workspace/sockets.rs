//! Sockets in a project: a writable bind would let commands connect to them.

use std::os::fd::OwnedFd;

use rustix::fs::FileType;

use super::{Answers, JobError, beneath};
use crate::proto::keeper::{ApplyOutcome, JobDone, SocketsJob, workspace_message::Message as Answer};

pub fn run(project: &OwnedFd, job: &SocketsJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let mut found = Vec::new();
    look(project, b"", job.most as usize, &mut found)?;
    let count = found.len() as u64;
    for path in found {
        answers.tell(Answer::Outcome(ApplyOutcome { path, ..ApplyOutcome::default() }))?;
    }
    Ok(JobDone { count, ..JobDone::default() })
}

fn look(dir: &OwnedFd, path: &[u8], most: usize, found: &mut Vec<Vec<u8>>) -> Result<(), JobError> {
    for name in beneath::names(dir)? {
        if found.len() >= most {
            return Ok(());
        }
        let Some(stat) = beneath::stat(dir, &name)? else { continue };
        let inner = beneath::join(path, &name);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => found.push(inner),
            FileType::Directory => look(&beneath::open_directory(dir, name.as_encoded_bytes())?, &inner, most, found)?,
            _ => {}
        }
    }
    Ok(())
}
