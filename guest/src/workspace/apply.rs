//! Brings changes into the project: plan, stage, write the journal, carry it out.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    fs::{self as stdfs, File},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    fs::{self, Mode, OFlags, Timespec, Timestamps},
    io::Errno,
};

use super::{
    Answers, JobError, beneath,
    journal::{self, Act, Journal, Step},
    layer::{self, Place},
    scan,
};
use crate::proto::keeper::{
    ApplyItem, ApplyJob, ApplyOutcome, ApplyResult as Outcome, JobDone, LayerChange, LayerChangeKind as Kind,
    LayerFileType as Type, workspace_message::Message as Answer,
};

pub fn run(place: &Place, job: &ApplyJob, answers: Answers) -> Result<JobDone, JobError> {
    if job.apply_id.is_empty() || job.apply_id.contains('/') {
        return Err(JobError::new("INVALID_INPUT", "an apply needs an id"));
    }
    let changes: BTreeMap<Vec<u8>, LayerChange> =
        scan::changes(place, job.attached_at_ns)?.into_iter().map(|change| (change.path.clone(), change)).collect();
    let mut plan =
        Plan { place, job, changes: &changes, steps: Vec::new(), made: HashSet::new(), contents: BTreeMap::new() };
    let mut outcomes = Vec::new();
    for item in &job.items {
        let (result, reason) = plan.item(item)?;
        outcomes.push(ApplyOutcome { path: item.path.clone(), result: result.into(), reason: reason.into() });
    }
    let count = outcomes.iter().filter(|outcome| outcome.result() == Outcome::Applied).count() as u64;
    let Plan { steps, contents, .. } = plan;
    if !job.dry_run && !steps.is_empty() {
        apply(place, job, order(steps), &contents)?;
    }
    for outcome in outcomes {
        answers(Answer::Outcome(outcome))?;
    }
    Ok(JobDone { apply_id: job.apply_id.clone(), count })
}

struct Plan<'a> {
    place: &'a Place,
    job: &'a ApplyJob,
    changes: &'a BTreeMap<Vec<u8>, LayerChange>,
    steps: Vec<Step>,
    /// Directories that a step makes.
    made: HashSet<Vec<u8>>,
    /// Contents that replace the layer's.
    contents: BTreeMap<Vec<u8>, &'a [u8]>,
}

impl<'a> Plan<'a> {
    fn item(&mut self, item: &'a ApplyItem) -> Result<(Outcome, &'static str), JobError> {
        if beneath::split(&item.path).is_none() {
            return Ok((Outcome::Refused, "the path is not one below the project"));
        }
        let Some(change) = self.changes.get(&item.path) else { return Ok((Outcome::Same, "")) };
        if change.conflict && !item.force && item.content.is_none() {
            return Ok((Outcome::Conflict, "it was changed on the host meanwhile"));
        }
        if let Some(content) = &item.content {
            self.contents.insert(item.path.clone(), content);
        }
        match (change.kind(), &change.old, &change.new) {
            (Kind::Deleted, Some(old), _) => {
                let act = if old.r#type == i32::from(Type::Directory) { Act::RemoveDirectory } else { Act::Remove };
                self.push(act, &item.path, old.mode, old.mode);
            }
            (Kind::Mode, Some(old), Some(new)) => self.push(Act::Chmod, &item.path, new.mode, old.mode),
            (_, old, Some(new)) => {
                if new.r#type == i32::from(Type::Special) {
                    return Ok((Outcome::Refused, "it is a device, a FIFO or a socket"));
                }
                if !self.parents(&item.path)? {
                    return Ok((Outcome::Refused, "a link is in its way"));
                }
                if let Some(old) = old
                    && old.r#type != new.r#type
                {
                    let directory = old.r#type == i32::from(Type::Directory);
                    self.push(
                        if directory { Act::RemoveDirectory } else { Act::Remove },
                        &item.path,
                        old.mode,
                        old.mode,
                    );
                }
                let act = if new.r#type == i32::from(Type::Directory) { Act::MakeDirectory } else { Act::Place };
                if act == Act::Place || self.made.insert(item.path.clone()) {
                    self.push(act, &item.path, new.mode, 0);
                }
            }
            _ => return Ok((Outcome::Refused, "there is nothing to apply")),
        }
        Ok((Outcome::Applied, ""))
    }

    /// Makes the directories above a path that the project does not have; false when a link or file is in the way.
    fn parents(&mut self, path: &[u8]) -> Result<bool, JobError> {
        for end in path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at) {
            let parent = &path[..end];
            if self.made.contains(parent) {
                continue;
            }
            let planned = self.changes.get(parent).and_then(|change| change.new.as_ref());
            match layer::stat_path(&self.place.lower, parent)? {
                Some(stat) if layer::file_type(&stat) == Type::Directory => {}
                Some(_) => return Ok(false),
                None => {
                    self.made.insert(parent.to_vec());
                    self.push(Act::MakeDirectory, parent, planned.map_or(0o755, |state| state.mode), 0);
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, act: Act, path: &[u8], mode: u32, old_mode: u32) {
        self.steps.push(Step {
            act: act.into(),
            path: path.to_vec(),
            mode,
            old_mode,
            uid: self.job.uid,
            gid: self.job.gid,
            ..Step::default()
        });
    }
}

/// Removals first, deepest first; then everything new, directories before what is in them; modes last.
fn order(mut steps: Vec<Step>) -> Vec<Step> {
    let removes = |step: &Step| matches!(step.act(), Act::Remove | Act::RemoveDirectory);
    steps.sort_by(|a, b| match (removes(a), removes(b)) {
        (true, true) => b.path.cmp(&a.path),
        (false, false) => (a.act() == Act::Chmod, &a.path).cmp(&(b.act() == Act::Chmod, &b.path)),
        (a, b) => b.cmp(&a),
    });
    for (number, step) in steps.iter_mut().enumerate() {
        step.number = number as u32;
    }
    steps
}

fn apply(place: &Place, job: &ApplyJob, steps: Vec<Step>, contents: &BTreeMap<Vec<u8>, &[u8]>) -> Result<(), JobError> {
    let journal = prepare(place, job, steps, contents)?;
    journal::carry_out(place, &place.applies.join(&job.apply_id), journal)
}

/// Stages everything and writes the journal: from here on the apply will be completed.
fn prepare(
    place: &Place,
    job: &ApplyJob,
    mut steps: Vec<Step>,
    contents: &BTreeMap<Vec<u8>, &[u8]>,
) -> Result<Journal, JobError> {
    let dir = place.applies.join(&job.apply_id);
    stdfs::create_dir_all(&place.applies)?;
    stdfs::create_dir(&dir)?;
    let staged = stage(place, job, &mut steps, contents).and_then(|()| Ok(fs::syncfs(&place.lower)?));
    if let Err(error) = staged {
        journal::clear_staging(place, &job.apply_id)?;
        stdfs::remove_dir_all(&dir)?;
        return Err(error);
    }
    let journal = Journal { id: job.apply_id.clone(), steps };
    journal::write(&dir, "journal", &journal)?;
    Ok(journal)
}

/// An apply that stops after some steps, as a crash would leave it.
#[cfg(test)]
pub fn interrupted(place: &Place, job: &ApplyJob, after: usize) -> Result<(), JobError> {
    let changes =
        scan::changes(place, job.attached_at_ns)?.into_iter().map(|change| (change.path.clone(), change)).collect();
    let mut plan =
        Plan { place, job, changes: &changes, steps: Vec::new(), made: HashSet::new(), contents: BTreeMap::new() };
    for item in &job.items {
        plan.item(item)?;
    }
    let Plan { steps, contents, .. } = plan;
    let journal = prepare(place, job, order(steps), &contents)?;
    journal::carry_out_some(place, &journal, after)
}

/// Copies everything new into a directory of the project's own file system.
fn stage(
    place: &Place,
    job: &ApplyJob,
    steps: &mut [Step],
    contents: &BTreeMap<Vec<u8>, &[u8]>,
) -> Result<(), JobError> {
    let name = journal::staging_name(&job.apply_id);
    fs::mkdirat(&place.lower, &name, Mode::from_raw_mode(0o700))?;
    let staging = beneath::open_directory(&place.lower, name.as_bytes())?;
    for step in steps.iter_mut().filter(|step| step.act() == Act::Place) {
        let kept = step.kept();
        if let Some(content) = contents.get(&step.path) {
            let mut file = create(&staging, &kept)?;
            file.write_all(content)?;
        } else {
            let (parent, name) = beneath::split(&step.path).ok_or(Errno::INVAL)?;
            let upper = beneath::open_directory(&place.upper, parent)?;
            copy((&upper, name), (&staging, &kept))?;
        }
        let replaced = layer::stat_path(&place.lower, &step.path)?;
        if let Some(replaced) = &replaced {
            (step.uid, step.gid) = (replaced.st_uid, replaced.st_gid);
        }
        step.inode = finish(&staging, &kept, step)?;
    }
    Ok(())
}

/// Owner and mode of a staged file; returns its inode.
fn finish(staging: &OwnedFd, name: &OsStr, step: &Step) -> Result<u64, JobError> {
    let stat = beneath::stat(staging, name)?.ok_or(Errno::NOENT)?;
    if layer::file_type(&stat) == Type::Regular {
        let file = beneath::open_file(staging, name)?;
        journal::own(&file, step.uid, step.gid)?;
        fs::fchmod(&file, Mode::from_raw_mode(step.mode & 0o777))?;
    }
    Ok(stat.st_ino)
}

fn create(dir: impl AsFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Copies a regular file with its times, or a link. A copy that was left half-made is replaced.
pub fn copy(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<(), JobError> {
    let (source_dir, source_name) = (from.0.as_fd(), from.1);
    let stat = beneath::stat(source_dir, source_name)?.ok_or(Errno::NOENT)?;
    if beneath::stat(&to.0, to.1)?.is_some() {
        fs::unlinkat(&to.0, to.1, fs::AtFlags::empty())?;
    }
    if layer::file_type(&stat) == Type::Symlink {
        let target = fs::readlinkat(source_dir, source_name, Vec::new())?;
        return Ok(fs::symlinkat(target, &to.0, to.1)?);
    }
    let mut source = File::from(beneath::open_file(source_dir, source_name)?);
    let mut copy = create(&to.0, to.1)?;
    io::copy(&mut source, &mut copy)?;
    let mtime = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
    fs::futimens(&copy, &Timestamps { last_access: mtime, last_modification: mtime })?;
    fs::fchmod(&copy, Mode::from_raw_mode(layer::permissions(&stat)))?;
    Ok(())
}
