//! `caisson-guest workspace`: reads a sandbox's writable layer and brings changes into the project.
//! One job per process, on standard input; the answers go to standard output.

mod apply;
pub mod beneath;
mod carry_out;
mod compare;
mod copying;
mod directories;
mod export;
mod git_index;
mod journal;
mod layer;
mod rebase;
mod renames;
mod scan;
mod sockets;
mod transfer;
mod undo;
mod whole;

#[cfg(test)]
mod tests;

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufWriter, Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::ExitCode,
};

use prost::Message;

use crate::proto::keeper::{
    JobDone, KeeperFailure, WorkspaceJob, WorkspaceMessage, workspace_job::Job, workspace_message::Message as Answer,
};

/// A job is small but for merged contents, which the daemon bounds.
const MAX_JOB: usize = 256 << 20;

/// Where a job's answers go.
pub trait Answers {
    fn tell(&mut self, answer: Answer) -> io::Result<()>;
    /// Returns when everything that was told is out of this process.
    fn flush(&mut self) -> io::Result<()>;
}

/// One message after the other, each behind its length.
struct Messages<W: Write>(W);

impl<W: Write> Answers for Messages<W> {
    fn tell(&mut self, answer: Answer) -> io::Result<()> {
        let bytes = WorkspaceMessage { message: Some(answer) }.encode_to_vec();
        self.0.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.0.write_all(&bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Why a job failed: a code of the error table and a sentence.
#[derive(Debug)]
pub struct JobError {
    pub code: &'static str,
    pub message: String,
    pub errno: i32,
}

impl JobError {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        JobError { code, message: message.into(), errno: 0 }
    }
}

impl From<io::Error> for JobError {
    fn from(error: io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        let code = if errno == libc::ENOSPC || errno == libc::EDQUOT { "STORAGE_FULL" } else { "INTERNAL" };
        JobError { code, message: error.to_string(), errno }
    }
}

impl From<rustix::io::Errno> for JobError {
    fn from(errno: rustix::io::Errno) -> Self {
        io::Error::from(errno).into()
    }
}

pub fn main(_args: &[OsString]) -> ExitCode {
    // The layer may hold files and directories of mode 000. Their owner can read them as the root of a
    // user namespace of its own.
    if !rustix::process::geteuid().is_root() && crate::sys::own_user_namespace::enter().is_err() {
        eprintln!("caisson-guest workspace: no user namespace; files without permissions will be refused");
    }
    let mut out = Messages(BufWriter::with_capacity(256 << 10, io::stdout().lock()));
    let last = match read_job().map_err(JobError::from).and_then(|job| run(&job, &mut out)) {
        Ok(done) => Answer::Done(done),
        Err(JobError { code, message, errno }) => {
            Answer::Failure(KeeperFailure { code: code.into(), message, errno: errno as u32 })
        }
    };
    match out.tell(last).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Copies a regular file with its times and permission bits.
pub fn copy_file(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr)) -> io::Result<()> {
    copying::copy(from, to).map_err(|error| io::Error::other(error.message))
}

/// Runs one job; what it finds goes to `answers`.
pub fn run(job: &WorkspaceJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    if let Some(Job::Sockets(options)) = &job.job {
        return sockets::run(&layer::open_directory(Path::new(&job.lower))?, options, answers);
    }
    let place = layer::Place::open(job)?;
    let changes_project = match &job.job {
        Some(Job::Apply(options)) => !options.dry_run,
        Some(Job::Undo(options)) => !options.dry_run,
        _ => false,
    };
    if changes_project {
        // Nothing new before what was interrupted is complete.
        carry_out::recover(&place)?;
    }
    match &job.job {
        Some(Job::Scan(options)) => scan::run(&place, options, answers),
        Some(Job::Apply(options)) => apply::run(&place, options, answers),
        Some(Job::Undo(options)) => undo::run(&place, options, answers),
        Some(Job::Recover(_)) => carry_out::recover(&place),
        Some(Job::Copy(_)) => whole::copy(&place),
        Some(Job::Export(options)) => export::run(&place, options, answers),
        Some(Job::Rebase(options)) => rebase::run(&place, options),
        Some(Job::Sockets(_)) | None => Err(JobError::new("INVALID_INPUT", "no job was given")),
        Some(Job::Pack(options)) => transfer::pack(&place, options, answers),
        Some(Job::Unpack(options)) => transfer::unpack(&place, options, &mut io::stdin().lock()),
    }
}

fn read_job() -> io::Result<WorkspaceJob> {
    let mut stdin = io::stdin().lock();
    let mut length = [0; 4];
    stdin.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_JOB {
        return Err(io::Error::other("the job is too large"));
    }
    let mut bytes = vec![0; length];
    stdin.read_exact(&mut bytes)?;
    WorkspaceJob::decode(&*bytes).map_err(io::Error::other)
}
