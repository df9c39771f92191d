//! Brings changes into the project: plan, stage, write the journal, carry it out.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs::{self as stdfs, File},
    io::Write,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::{self, Mode},
    io::Errno,
};

use super::{
    Answers, JobError, beneath, carry_out, copying,
    journal::{self, Act, Identity, JOURNAL, Journal, Step},
    layer::{self, Place},
    scan,
};
use crate::proto::keeper::{
    ApplyItem, ApplyJob, ApplyOutcome, ApplyResult as Outcome, JobDone, LayerChange, LayerChangeKind as Kind,
    LayerFileType as Type, LayerState, workspace_message::Message as Answer,
};

pub fn run(place: &Place, job: &ApplyJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    if job.apply_id.is_empty() || job.apply_id.contains('/') {
        return Err(JobError::new("INVALID_INPUT", "an apply needs an id"));
    }
    let changes: BTreeMap<Vec<u8>, LayerChange> =
        scan::changes(place, scan::Since::new(job.attached_at_ns, job.rebased.as_ref()))?
            .into_iter()
            .map(|change| (change.path.clone(), change))
            .collect();
    let mut plan = Plan::new(place, job, &changes);
    let mut outcomes = Vec::new();
    for item in &job.items {
        let (result, reason) = plan.item(item)?;
        if result == Outcome::Applied && !item.from.is_empty() {
            plan.moved_away(&item.from);
        }
        outcomes.push(ApplyOutcome { path: item.path.clone(), result: result.into(), reason: reason.into() });
    }
    let count = outcomes.iter().filter(|outcome| outcome.result() == Outcome::Applied).count() as u64;
    let Plan { steps, contents, .. } = plan;
    let tell = || -> Result<(), JobError> {
        for outcome in outcomes {
            answers.tell(Answer::Outcome(outcome))?;
        }
        Ok(answers.flush()?)
    };
    if job.dry_run || steps.is_empty() {
        tell()?;
    } else {
        // Everything is told before the journal is written: whoever hears of a crash behind it knows what was done.
        let journal = prepare(place, job, order(steps), &contents, tell)?;
        carry_out::carry_out(place, &place.applies.join(&job.apply_id), journal)?;
    }
    Ok(JobDone { apply_id: job.apply_id.clone(), count })
}

const OTHERS_WRITE: u32 = 0o002;

/// Files, links and directories are judged differently.
const BECAME_ANOTHER: &str = "the sandbox has made something else of it meanwhile";

struct Plan<'a> {
    place: &'a Place,
    job: &'a ApplyJob,
    changes: &'a BTreeMap<Vec<u8>, LayerChange>,
    steps: Vec<Step>,
    /// Directories that a step makes.
    made: HashSet<Vec<u8>>,
    /// Contents that replace the layer's.
    contents: BTreeMap<Vec<u8>, &'a [u8]>,
    /// What the job names, and whether against the host's changes. What was moved away is named by what it became.
    chosen: HashMap<&'a [u8], bool>,
}

impl<'a> Plan<'a> {
    fn new(place: &'a Place, job: &'a ApplyJob, changes: &'a BTreeMap<Vec<u8>, LayerChange>) -> Self {
        let names = |item: &'a ApplyItem| [item.path.as_slice(), item.from.as_slice()].map(|name| (name, item.force));
        let chosen = job.items.iter().flat_map(names).collect();
        Plan { place, job, changes, steps: Vec::new(), made: HashSet::new(), contents: BTreeMap::new(), chosen }
    }

    fn item(&mut self, item: &'a ApplyItem) -> Result<(Outcome, &'static str), JobError> {
        if beneath::split(&item.path).is_none() {
            return Ok((Outcome::Refused, "the path is not one below the project"));
        }
        if item.path.len() > beneath::MAX_PATH {
            return Ok((Outcome::Refused, "the path is too long"));
        }
        let Some(change) = self.changes.get(&item.path) else { return Ok((Outcome::Same, "")) };
        let found = change.new.as_ref().map_or(Type::Unspecified.into(), |new| new.r#type);
        if item.r#type.is_some_and(|judged| judged != found) {
            return Ok((Outcome::Refused, BECAME_ANOTHER));
        }
        if change.conflict && !item.force && item.content.is_none() {
            return Ok((Outcome::Conflict, "it was changed on the host meanwhile"));
        }
        if self.takes_directory_away(change) && !self.leaves_nothing_in(&item.path) {
            return Ok((Outcome::Conflict, "something in it is the host's, or stays"));
        }
        if let Some(content) = &item.content {
            self.contents.insert(item.path.clone(), content);
        }
        let clean = !change.conflict;
        if change.new.as_ref().is_some_and(|new| new.r#type == i32::from(Type::Special)) {
            return Ok((Outcome::Refused, "it is a device, a FIFO or a socket"));
        }
        match (change.kind(), &change.old, &change.new) {
            (Kind::Deleted, Some(old), _) => {
                let act = if old.r#type == i32::from(Type::Directory) { Act::RemoveDirectory } else { Act::Remove };
                self.push(act, &item.path, old.mode, clean);
            }
            (Kind::Mode, Some(_), Some(new)) => self.push(Act::Chmod, &item.path, self.mode_beside(item, new)?, clean),
            (_, old, Some(new)) => {
                if !self.parents(&item.path)? {
                    return Ok((Outcome::Refused, "a link or a file is in its way"));
                }
                if let Some(old) = old
                    && old.r#type != new.r#type
                {
                    let directory = old.r#type == i32::from(Type::Directory);
                    let act = if directory { Act::RemoveDirectory } else { Act::Remove };
                    self.push(act, &item.path, old.mode, clean);
                }
                let act = if new.r#type == i32::from(Type::Directory) { Act::MakeDirectory } else { Act::Place };
                if act == Act::Place || self.made.insert(item.path.clone()) {
                    self.push(act, &item.path, new.mode, clean);
                }
            }
            _ => return Ok((Outcome::Refused, "there is nothing to apply")),
        }
        Ok((Outcome::Applied, ""))
    }

    /// Something that is no directory takes the place of one.
    fn takes_directory_away(&self, change: &LayerChange) -> bool {
        let directory = i32::from(Type::Directory);
        change.old.as_ref().is_some_and(|old| old.r#type == directory)
            && change.new.as_ref().is_some_and(|new| new.r#type != directory)
    }

    /// Everything that the project has in a directory is removed by this apply.
    fn leaves_nothing_in(&self, path: &[u8]) -> bool {
        let inside = [path, b"/"].concat();
        let below = self.changes.range(inside.clone()..).take_while(|(below, _)| below.starts_with(&inside));
        below.into_iter().all(|(below, change)| {
            let forced = self.chosen.get(below.as_slice());
            change.old.is_none() || forced.is_some_and(|forced| *forced || !change.conflict)
        })
    }

    /// Where a renamed file was; what the host changed there meanwhile stays.
    fn moved_away(&mut self, from: &[u8]) {
        if let Some(change) = self.changes.get(from)
            && (change.kind(), change.conflict) == (Kind::Deleted, false)
        {
            self.push(Act::Remove, from, 0, true);
        }
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
                    self.push(Act::MakeDirectory, parent, planned.map_or(0o755, |state| state.mode), true);
                }
            }
        }
        Ok(true)
    }

    /// A directory of the project keeps its set-gid and sticky bits; a file keeps none.
    fn mode_beside(&self, item: &ApplyItem, new: &LayerState) -> Result<u32, JobError> {
        let special = match layer::stat_path(&self.place.lower, &item.path)? {
            Some(stat) if layer::file_type(&stat) == Type::Directory => stat.st_mode & 0o7000,
            _ => 0,
        };
        Ok(new.mode | special)
    }

    fn push(&mut self, act: Act, path: &[u8], mode: u32, clean: bool) {
        self.steps.push(Step {
            act: act.into(),
            path: path.to_vec(),
            mode,
            clean,
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

/// Stages everything and writes the journal: from here on the apply will be completed.
fn prepare(
    place: &Place,
    job: &ApplyJob,
    mut steps: Vec<Step>,
    contents: &BTreeMap<Vec<u8>, &[u8]>,
    tell: impl FnOnce() -> Result<(), JobError>,
) -> Result<Journal, JobError> {
    let dir = place.applies.join(&job.apply_id);
    stdfs::create_dir_all(&place.applies)?;
    stdfs::create_dir(&dir)?;
    let staged = stage(place, job, &mut steps, contents).and_then(|()| Ok(fs::syncfs(&place.lower)?));
    if let Err(error) = staged.and_then(|()| tell()) {
        carry_out::clear_staging(place, &job.apply_id)?;
        stdfs::remove_dir_all(&dir)?;
        return Err(error);
    }
    let journal = Journal { id: job.apply_id.clone(), steps };
    journal::write(&dir, JOURNAL, &journal)?;
    Ok(journal)
}

/// An apply that stops after some steps, as a crash would leave it.
#[cfg(test)]
pub fn interrupted(place: &Place, job: &ApplyJob, after: usize) -> Result<(), JobError> {
    let changes = scan::changes(place, scan::Since::new(job.attached_at_ns, job.rebased.as_ref()))?
        .into_iter()
        .map(|change| (change.path.clone(), change))
        .collect();
    let mut plan = Plan::new(place, job, &changes);
    for item in &job.items {
        plan.item(item)?;
    }
    let Plan { steps, contents, .. } = plan;
    let journal = prepare(place, job, order(steps), &contents, || Ok(()))?;
    carry_out::carry_out_some(place, &journal, after)
}

/// Copies everything new into a directory of the project's own file system, and notes how things were.
fn stage(
    place: &Place,
    job: &ApplyJob,
    steps: &mut [Step],
    contents: &BTreeMap<Vec<u8>, &[u8]>,
) -> Result<(), JobError> {
    let name = journal::staging_name(&job.apply_id);
    fs::mkdirat(&place.lower, &name, Mode::from_raw_mode(0o700))?;
    let staging = beneath::open_directory(&place.lower, name.as_bytes())?;
    let judged: HashMap<&[u8], i32> =
        job.items.iter().filter_map(|item| Some((item.path.as_slice(), item.r#type?))).collect();
    for step in steps.iter_mut() {
        let (parent, name) = beneath::split(&step.path).ok_or(Errno::INVAL)?;
        if let Some(before) = layer::stat_path(&place.lower, &step.path)? {
            step.before = Some(Identity::of(&before));
            step.old_mode = before.st_mode & 0o7777;
            (step.uid, step.gid) = (before.st_uid, before.st_gid);
        }
        if matches!(step.act(), Act::Remove | Act::RemoveDirectory) {
            step.source = Some(Identity::GONE);
            continue;
        }
        // In the sandbox there are no others; on the host they may write what they could write before.
        step.mode &= !OTHERS_WRITE | step.old_mode;
        let upper = beneath::open_directory(&place.upper, parent)?;
        step.source = beneath::stat(&upper, name)?.as_ref().map(Identity::of_source);
        if step.act() != Act::Place {
            continue;
        }
        let kept = step.kept();
        match contents.get(&step.path) {
            Some(content) => File::from(copying::create(&staging, &kept)?).write_all(content)?,
            None => copying::copy((&upper, name), (&staging, &kept))?,
        }
        // What was copied counts, not what was there a moment before.
        let staged = beneath::stat(&staging, &kept)?.ok_or(Errno::NOENT)?;
        if judged.get(step.path.as_slice()).is_some_and(|judged| *judged != i32::from(layer::file_type(&staged))) {
            return Err(JobError::new("WORKSPACE_IN_USE", BECAME_ANOTHER));
        }
        step.inode = finish(&staging, &kept, step)?;
    }
    Ok(())
}

/// Owner and mode of a staged file; returns its inode.
fn finish(staging: &OwnedFd, name: &OsStr, step: &Step) -> Result<u64, JobError> {
    let stat = beneath::stat(staging, name)?.ok_or(Errno::NOENT)?;
    copying::own(staging, name, step.uid, step.gid)?;
    if layer::file_type(&stat) == Type::Regular {
        fs::fchmod(beneath::open_file(staging, name)?, Mode::from_raw_mode(step.mode & 0o777))?;
    }
    Ok(stat.st_ino)
}
