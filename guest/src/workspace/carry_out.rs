//! Carrying out a journal, from wherever a crash has left it. Every step may be repeated.

use std::{
    ffi::{OsStr, OsString},
    fs as stdfs,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{
    JobError, beneath, copying,
    journal::{self, APPLIED, Act, Identity, JOURNAL, Journal, Step, UNDOING, staging_name},
    layer::{self, Place},
    undo,
};
use crate::proto::keeper::{JobDone, LayerFileType as Type};

/// Carries out a written journal and closes it.
pub fn carry_out(place: &Place, dir: &Path, mut journal: Journal) -> Result<(), JobError> {
    let staging = match beneath::open_directory(&place.lower, staging_name(&journal.id).as_encoded_bytes()) {
        Ok(staging) => Some(staging),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if dir.join(APPLIED).exists() {
        journal = journal::read(&dir.join(APPLIED))?;
    } else {
        let staging = staging.as_ref().ok_or_else(|| {
            JobError::new("CORRUPT_LOG", "somebody removed the files that an interrupted apply had staged")
        })?;
        all_steps(place, staging, &mut journal)?;
        // What is moved back must not reach the disk before what is moved in.
        fs::syncfs(&place.lower)?;
        journal::write(dir, APPLIED, &journal)?;
    }
    if let Some(staging) = &staging {
        keep_replaced(staging, dir, &mut journal)?;
        fs::unlinkat(&place.lower, staging_name(&journal.id), AtFlags::REMOVEDIR)?;
    }
    Ok(stdfs::remove_file(dir.join(JOURNAL))?)
}

fn all_steps(place: &Place, staging: &OwnedFd, journal: &mut Journal) -> Result<(), JobError> {
    let mut opened = Opened::default();
    for step in &mut journal.steps {
        carry_out_step(place, &mut opened, staging, step)?;
    }
    journal.steps.retain(|step| step.act() != Act::Unknown);
    // A directory that its owner may not write to gets its mode when everything is in it.
    for step in &journal.steps {
        if step.act() == Act::MakeDirectory && step.mode & 0o700 != 0o700 {
            if let Some((dir, name)) = opened.parent(place, &step.path)? {
                chmod(dir, name, step.mode)?;
            }
        }
    }
    for step in &mut journal.steps {
        let now = match opened.parent(place, &step.path)? {
            Some((dir, name)) => beneath::stat(dir, name)?,
            None => None,
        };
        step.after = now.as_ref().map(Identity::of);
    }
    Ok(())
}

/// The first steps only, as before a crash.
#[cfg(test)]
pub fn carry_out_some(place: &Place, journal: &Journal, count: usize) -> Result<(), JobError> {
    let staging = beneath::open_directory(&place.lower, staging_name(&journal.id).as_encoded_bytes())?;
    let mut opened = Opened::default();
    let mut steps = journal.steps.clone();
    steps.iter_mut().take(count).try_for_each(|step| carry_out_step(place, &mut opened, &staging, step))
}

/// The directory of the last step: steps come in the order of paths.
#[derive(Default)]
pub struct Opened {
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Opened {
    /// The directory that holds a path and its name there; `None` when there is no such directory.
    pub fn parent<'a>(&mut self, place: &Place, path: &'a [u8]) -> Result<Option<(&OwnedFd, &'a OsStr)>, JobError> {
        let (parent, name) = beneath::split(path).ok_or(Errno::INVAL)?;
        if self.last.as_ref().is_none_or(|(path, _)| path != parent) {
            self.last = match beneath::open_directory(&place.lower, parent) {
                Ok(dir) => Some((parent.to_vec(), dir)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.last.as_ref().map(|(_, dir)| (dir, name)))
    }
}

fn carry_out_step(place: &Place, opened: &mut Opened, staging: &OwnedFd, step: &mut Step) -> Result<(), JobError> {
    let path = step.path.clone();
    // Its directory is gone: a later step of ours, or somebody else, took it away.
    let Some((dir, name)) = opened.parent(place, &path)? else { return Ok(()) };
    match step.act() {
        Act::Remove => match rename_new((dir, name), (staging, &step.kept())) {
            Ok(()) | Err(Errno::NOENT | Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Act::RemoveDirectory => match fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
            // Somebody put something into it meanwhile: it stays.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Act::MakeDirectory => make_directory(dir, name, step.mode | 0o700, (step.uid, step.gid)),
        Act::Place => put_in_place(dir, name, staging, step),
        Act::Chmod => chmod(dir, name, step.mode),
        Act::Unknown => Err(JobError::new("CORRUPT_LOG", "the journal of an apply names an unknown step")),
    }
}

/// Makes a directory with this mode, whatever the umask is; one that is there is left as it is.
pub fn make_directory(dir: &OwnedFd, name: &OsStr, mode: u32, (uid, gid): (u32, u32)) -> Result<(), JobError> {
    match fs::mkdirat(dir, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => {}
        Err(Errno::EXIST) if is_unfinished(dir, name)? => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    copying::own(dir, name, uid, gid)?;
    let made = beneath::open_directory(dir, name.as_encoded_bytes())?;
    Ok(fs::fchmod(&made, Mode::from_raw_mode(mode))?)
}

/// Was it made by a step that a crash interrupted before it had its mode? Nothing is in it then.
fn is_unfinished(dir: &OwnedFd, name: &OsStr) -> Result<bool, JobError> {
    let Some(there) = beneath::stat(dir, name)? else { return Ok(false) };
    if layer::file_type(&there) != Type::Directory || layer::permissions(&there) != 0o700 {
        return Ok(false);
    }
    Ok(beneath::names(beneath::open_directory(dir, name.as_encoded_bytes())?)?.is_empty())
}

fn put_in_place(dir: &OwnedFd, name: &OsStr, staging: &OwnedFd, step: &mut Step) -> Result<(), JobError> {
    let kept = step.kept();
    match beneath::stat(dir, name)? {
        Some(there) if there.st_ino == step.inode => {}
        // Somebody put something into it meanwhile: it stays, and nothing is done here.
        Some(there) if layer::file_type(&there) == Type::Directory => {
            step.set_act(Act::Unknown);
            return Ok(fs::unlinkat(staging, &kept, AtFlags::empty())?);
        }
        Some(_) => exchange((staging, &kept), (dir, name))?,
        None => rename_new((staging, &kept), (dir, name))?,
    }
    // An exchange in two parts may have been interrupted between them.
    match fs::renameat(staging, set_aside(&kept), staging, &kept) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // After an exchange, and after a crash behind it, what was there is in the staging directory.
    step.replaced = beneath::stat(staging, &kept)?.is_some();
    Ok(())
}

/// Puts the first in the second's place, at once, and keeps the second under the first's name.
fn exchange(new: (&OwnedFd, &OsStr), old: (&OwnedFd, &OsStr)) -> Result<(), Errno> {
    match fs::renameat_with(new.0, new.1, old.0, old.1, RenameFlags::EXCHANGE) {
        // NFS and others cannot: set the old one aside by a second name first.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        other => return other,
    }
    let aside = set_aside(new.1);
    match fs::linkat(old.0, old.1, new.0, &aside, AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(_) => fs::renameat(old.0, old.1, new.0, &aside)?,
    }
    fs::renameat(new.0, new.1, old.0, old.1)
}

fn set_aside(kept: &OsStr) -> OsString {
    let mut name = OsString::from("was-");
    name.push(kept);
    name
}

/// Renames where nothing is yet.
pub fn rename_new(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<(), Errno> {
    match fs::renameat_with(&from.0, from.1, &to.0, to.1, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match beneath::stat(&to.0, to.1)? {
            Some(_) => Err(Errno::EXIST),
            None => fs::renameat(&from.0, from.1, &to.0, to.1),
        },
        other => other,
    }
}

pub fn chmod(dir: impl AsFd, name: &OsStr, mode: u32) -> Result<(), JobError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match fs::openat(dir, name, flags, Mode::empty()) {
        Ok(file) => Ok(fs::fchmod(file, Mode::from_raw_mode(mode))?),
        // It is gone, or a link or socket now: nothing that has this mode.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Moves what was replaced or removed beside the journal, for undo.
fn keep_replaced(staging: &OwnedFd, dir: &Path, journal: &mut Journal) -> Result<(), JobError> {
    let keep = fs::open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for step in &journal.steps {
        let name = step.kept();
        if !(step.act() == Act::Remove || (step.act() == Act::Place && step.replaced)) {
            continue;
        }
        match fs::renameat(staging, &name, &keep, &name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::XDEV) => {
                copying::copy_own((staging, &name), (&keep, &name))?;
                fs::unlinkat(staging, &name, AtFlags::empty())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    // Moving a file that has other names changes the ctime of all of them.
    let mut linked = false;
    for step in &mut journal.steps {
        if let Some(stat) = beneath::stat(&keep, &step.kept())?.filter(|stat| stat.st_nlink > 1) {
            step.kept_as = Some(Identity::of(&stat));
            linked = true;
        }
    }
    if linked { journal::write(dir, APPLIED, journal) } else { Ok(()) }
}

/// Completes what a crash interrupted, and clears away what had not begun.
pub fn recover(place: &Place) -> Result<JobDone, JobError> {
    let mut done = JobDone::default();
    for dir in journal::applies(place)? {
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if dir.join(JOURNAL).exists() {
            carry_out(place, &dir, journal::read(&dir.join(JOURNAL))?)?;
            done = JobDone { apply_id: id, count: done.count + 1 };
        } else if !dir.join(APPLIED).exists() {
            clear_staging(place, &id)?;
            stdfs::remove_dir_all(&dir)?;
        } else if dir.join(UNDOING).exists() {
            undo::take_all_back(place, &dir, &[], &mut |_| Ok(()))?;
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
