//! The journal of an apply. Everything new is staged inside the project's file system and the journal is on disk before
//! the first file is touched; from then on an apply is always completed, also after a crash.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs as stdfs,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use prost::Message;
use rustix::{
    fs::{self, AtFlags, Mode, RenameFlags},
    io::Errno,
};

use super::{
    JobError, beneath,
    layer::{self, Place},
};
use crate::{proto::keeper::JobDone, sys::own_user_namespace};

/// For each path that an apply of ours put in place: inode and ctime as they were then.
pub type Applied = HashMap<Vec<u8>, (u64, i64)>;

#[derive(Clone, PartialEq, Message)]
pub struct Journal {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, repeated, tag = "2")]
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Act {
    Unknown = 0,
    /// Move a file out of the project, to `old-N`.
    Remove = 1,
    RemoveDirectory = 2,
    MakeDirectory = 3,
    /// Put `new-N` in place; what was there is then `new-N`.
    Place = 4,
    Chmod = 5,
}

#[derive(Clone, PartialEq, Message)]
pub struct Step {
    #[prost(enumeration = "Act", tag = "1")]
    pub act: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Its number among the staged files.
    #[prost(uint32, tag = "3")]
    pub number: u32,
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    #[prost(uint32, tag = "5")]
    pub old_mode: u32,
    /// Of the staged file: tells whether it is in place already.
    #[prost(uint64, tag = "6")]
    pub inode: u64,
    /// There was something in its place, which is now kept.
    #[prost(bool, tag = "7")]
    pub replaced: bool,
    #[prost(uint32, tag = "8")]
    pub uid: u32,
    #[prost(uint32, tag = "9")]
    pub gid: u32,
    /// How the file was when the apply had ended.
    #[prost(uint64, tag = "10")]
    pub after_inode: u64,
    #[prost(int64, tag = "11")]
    pub after_ctime: i64,
}

impl Step {
    pub fn kept(&self) -> OsString {
        let prefix = if self.act() == Act::Remove { "old" } else { "new" };
        format!("{prefix}-{}", self.number).into()
    }
}

/// The directory in the project in which an apply stages its files.
pub fn staging_name(id: &str) -> OsString {
    format!(".caisson-apply-{id}").into()
}

/// Writes the journal so that it is there whole or not at all.
pub fn write(dir: &Path, name: &str, journal: &Journal) -> Result<(), JobError> {
    let temporary = dir.join(format!("{name}.new"));
    stdfs::write(&temporary, journal.encode_to_vec())?;
    stdfs::File::open(&temporary)?.sync_all()?;
    stdfs::rename(&temporary, dir.join(name))?;
    stdfs::File::open(dir)?.sync_all()?;
    Ok(())
}

pub fn read(file: &Path) -> Result<Journal, JobError> {
    Journal::decode(&*stdfs::read(file)?)
        .map_err(|_| JobError::new("CORRUPT_LOG", "the journal of an apply is damaged"))
}

/// Carries out a written journal from wherever it was left, and closes it.
pub fn carry_out(place: &Place, dir: &Path, mut journal: Journal) -> Result<(), JobError> {
    let staging = match beneath::open_directory(&place.lower, staging_name(&journal.id).as_encoded_bytes()) {
        Ok(staging) => Some(staging),
        // Everything was moved out of it already.
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(staging) = &staging {
        for step in &mut journal.steps {
            carry_out_step(place, staging, step)?;
        }
        keep_replaced(staging, dir, &journal)?;
    }
    for step in &mut journal.steps {
        if let Some(stat) = layer::stat_path(&place.lower, &step.path)? {
            (step.after_inode, step.after_ctime) = (stat.st_ino, layer::ctime_ns(&stat));
        }
    }
    write(dir, "applied", &journal)?;
    stdfs::remove_file(dir.join("journal"))?;
    if staging.is_some() {
        fs::unlinkat(&place.lower, staging_name(&journal.id), AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// The first steps only, as before a crash.
#[cfg(test)]
pub fn carry_out_some(place: &Place, journal: &Journal, count: usize) -> Result<(), JobError> {
    let staging = beneath::open_directory(&place.lower, staging_name(&journal.id).as_encoded_bytes())?;
    journal.steps.iter().take(count).try_for_each(|step| carry_out_step(place, &staging, &mut step.clone()))
}

fn carry_out_step(place: &Place, staging: &OwnedFd, step: &mut Step) -> Result<(), JobError> {
    let path = step.path.clone();
    let (parent, name) = beneath::split(&path).ok_or(Errno::INVAL)?;
    let dir = match beneath::open_directory(&place.lower, parent) {
        Ok(dir) => dir,
        // Its directory is gone: a later step of ours, or somebody else, took it away.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match step.act() {
        Act::Remove => match fs::renameat_with(&dir, name, staging, step.kept(), RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT | Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Act::RemoveDirectory => match fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            // Somebody put something into it meanwhile: it stays.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Act::MakeDirectory => make_directory(&dir, name, step),
        Act::Place => put_in_place(&dir, name, staging, step),
        Act::Chmod => chmod(&dir, name, step.mode),
        Act::Unknown => Err(JobError::new("CORRUPT_LOG", "the journal of an apply names an unknown step")),
    }
}

fn make_directory(dir: &OwnedFd, name: &OsStr, step: &Step) -> Result<(), JobError> {
    match fs::mkdirat(dir, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let made = beneath::open_directory(dir, name.as_encoded_bytes())?;
    own(&made, step.uid, step.gid)?;
    Ok(fs::fchmod(&made, Mode::from_raw_mode(step.mode))?)
}

fn put_in_place(dir: &OwnedFd, name: &OsStr, staging: &OwnedFd, step: &mut Step) -> Result<(), JobError> {
    match beneath::stat(dir, name)? {
        Some(there) if there.st_ino == step.inode => {}
        Some(_) => fs::renameat_with(staging, step.kept(), dir, name, RenameFlags::EXCHANGE)?,
        None => fs::renameat_with(staging, step.kept(), dir, name, RenameFlags::NOREPLACE)?,
    }
    // After an exchange, and after a crash behind it, what was there is in the staging directory.
    step.replaced = beneath::stat(staging, &step.kept())?.is_some();
    Ok(())
}

fn chmod(dir: &OwnedFd, name: &OsStr, mode: u32) -> Result<(), JobError> {
    let flags = fs::OFlags::RDONLY | fs::OFlags::NOFOLLOW | fs::OFlags::NONBLOCK | fs::OFlags::CLOEXEC;
    match fs::openat(dir, name, flags, Mode::empty()) {
        Ok(file) => Ok(fs::fchmod(file, Mode::from_raw_mode(mode))?),
        Err(Errno::NOENT | Errno::LOOP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives a file to the project's owner; only root can and needs to.
pub fn own(file: impl AsFd, uid: u32, gid: u32) -> Result<(), Errno> {
    if own_user_namespace::entered() || !rustix::process::geteuid().is_root() || (uid == 0 && gid == 0) {
        return Ok(());
    }
    fs::fchown(file, Some(rustix::process::Uid::from_raw(uid)), Some(rustix::process::Gid::from_raw(gid)))
}

/// Moves what was replaced or removed beside the journal, for undo.
fn keep_replaced(staging: &OwnedFd, dir: &Path, journal: &Journal) -> Result<(), JobError> {
    let keep = fs::open(dir, fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC, Mode::empty())?;
    for step in &journal.steps {
        let name = step.kept();
        if !matches!(step.act(), Act::Remove | Act::Place) {
            continue;
        }
        match fs::renameat(staging, &name, &keep, &name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::XDEV) => {
                super::apply::copy((staging, &name), (&keep, &name))?;
                fs::unlinkat(staging, &name, AtFlags::empty())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Completes what a crash interrupted, and clears away what had not begun.
pub fn recover(place: &Place) -> Result<JobDone, JobError> {
    let mut done = JobDone::default();
    for entry in stdfs::read_dir(&place.applies).into_iter().flatten() {
        let dir = entry?.path();
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if dir.join("journal").exists() {
            carry_out(place, &dir, read(&dir.join("journal"))?)?;
            done = JobDone { apply_id: id, count: done.count + 1 };
        } else if !dir.join("applied").exists() {
            clear_staging(place, &id)?;
            stdfs::remove_dir_all(&dir)?;
        }
    }
    Ok(done)
}

/// Removes a staging directory in which only copies are.
pub fn clear_staging(place: &Place, id: &str) -> Result<(), JobError> {
    let name = staging_name(id);
    let Ok(staging) = beneath::open_directory(&place.lower, name.as_encoded_bytes()) else { return Ok(()) };
    for inner in beneath::names(&staging)? {
        fs::unlinkat(&staging, &inner, AtFlags::empty())?;
    }
    Ok(fs::unlinkat(&place.lower, name, AtFlags::REMOVEDIR)?)
}

/// What our own applies have put in place.
pub fn applied(applies: &Path) -> Result<Applied, JobError> {
    let mut applied = Applied::new();
    for entry in stdfs::read_dir(applies).into_iter().flatten() {
        let file = entry?.path().join("applied");
        if file.exists() {
            for step in read(&file)?.steps {
                applied.insert(step.path, (step.after_inode, step.after_ctime));
            }
        }
    }
    Ok(applied)
}
