//! `caisson-guest image`: unpacks the layers of images and puts roots together, and unpacks and checks the archives of
//! snapshots. What it reads was made by strangers, so it works without any privilege and can write nowhere but where its result goes.

mod assemble;
mod check;
mod confine;
mod layer;
mod manner;
mod reading;

#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod tests;

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use prost::Message;
use rustix::io::Errno;

use crate::proto::keeper::{ImageAnswer, ImageDone, ImageJob, KeeperFailure, image_answer::Answer, image_job::Job};

const MAX_JOB: usize = 1 << 20;

/// Why a job failed: a code of the error table and a sentence.
#[derive(Debug)]
pub struct Trouble {
    code: &'static str,
    message: String,
}

impl Trouble {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<&'static str> for Trouble {
    fn from(why: &'static str) -> Self {
        Self::new("HOSTILE_ARCHIVE", why)
    }
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        Self::new(if full { "STORAGE_FULL" } else { "INTERNAL" }, format!("unpacking an archive: {error}"))
    }
}

pub fn main() -> ExitCode {
    let mut input = io::stdin().lock();
    let answer = match read_job(&mut input).map_err(Trouble::from).and_then(|job| run(&job, &mut input)) {
        Ok(done) => Answer::Done(done),
        Err(Trouble { code, message }) => Answer::Failure(KeeperFailure { code: code.into(), message, errno: 0 }),
    };
    let bytes = ImageAnswer { answer: Some(answer) }.encode_to_vec();
    let mut out = io::stdout().lock();
    let told = out.write_all(&(bytes.len() as u32).to_le_bytes()).and_then(|()| out.write_all(&bytes));
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(job: &ImageJob, archive: &mut impl Read) -> Result<ImageDone, Trouble> {
    let directory = confine::open(&job.directory)?;
    match &job.job {
        Some(Job::Unpack(options)) => {
            confine::enter(job.uid, &[&directory])?;
            layer::unpack(&directory, archive, options)
        }
        Some(Job::Assemble(options)) => {
            let layers = options.layers.iter().map(|path| confine::open(path)).collect::<Result<Vec<_>, _>>()?;
            confine::enter(job.uid, &layers.iter().chain([&directory]).collect::<Vec<_>>())?;
            assemble::assemble(&directory, &layers)
        }
        Some(Job::Check(options)) => {
            confine::enter(job.uid, &[&directory])?;
            check::check(archive, options)
        }
        None => Err(Trouble::new("INVALID_INPUT", "no job was given")),
    }
}

fn read_job(input: &mut impl Read) -> io::Result<ImageJob> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_JOB {
        return Err(io::Error::other("the job is too large"));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    ImageJob::decode(&*bytes).map_err(io::Error::other)
}
