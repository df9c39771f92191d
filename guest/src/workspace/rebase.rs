//! Puts merged contents into the layer of a sandbox that has ended, in place of its own.

use std::{ffi::OsStr, fs::File, io::Write, os::fd::OwnedFd};

use rustix::{
    fs::{self, AtFlags, Mode, OFlags},
    io::Errno,
};

use super::{JobError, beneath, copying, layer::Place};
use crate::proto::keeper::{JobDone, RebaseJob};

/// Beside the layer: what a crash leaves there is no change.
const UNFINISHED: &str = "merging";

pub fn run(place: &Place, job: &RebaseJob) -> Result<JobDone, JobError> {
    let beside = fs::open(&place.layer, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for item in &job.items {
        let (parent, name) = beneath::split(&item.path).ok_or(Errno::INVAL)?;
        replace(&beside, &beneath::open_directory(&place.upper, parent)?, name, &item.content)?;
    }
    fs::syncfs(&place.upper)?;
    Ok(JobDone { count: job.items.len() as u64, ..JobDone::default() })
}

fn replace(beside: &OwnedFd, dir: &OwnedFd, name: &OsStr, content: &[u8]) -> Result<(), JobError> {
    let stat = fs::fstat(beneath::open_file(dir, name)?)?;
    let unfinished = OsStr::new(UNFINISHED);
    match fs::unlinkat(beside, unfinished, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let made = copying::create(beside, unfinished)?;
    File::from(made.try_clone()?).write_all(content)?;
    copying::own(beside, unfinished, stat.st_uid, stat.st_gid)?;
    fs::fchmod(&made, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    Ok(fs::renameat(beside, unfinished, dir, name)?)
}
