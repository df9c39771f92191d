//! Takes an apply back, file by file, where nobody has changed the file since. What a crash interrupts is completed.

use std::{collections::HashMap, ffi::OsStr, fs as stdfs, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{self, AtFlags, Mode, OFlags},
    io::Errno,
};

use super::{
    Answers, JobError, beneath,
    carry_out::{chmod, make_directory, rename_new},
    copying,
    journal::{self, APPLIED, Act, Identity, Journal, Step, UNDOING},
    layer::{self, Place},
};
use crate::proto::keeper::{
    ApplyOutcome, ApplyResult as Outcome, JobDone, LayerFileType as Type, UndoJob, workspace_message::Message as Answer,
};

pub fn run(place: &Place, job: &UndoJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let dir = place.applies.join(&job.apply_id);
    if job.apply_id.is_empty() || job.apply_id.contains('/') || !dir.join(APPLIED).exists() {
        return Err(JobError::new("PATH_NOT_FOUND", "there is no such apply"));
    }
    let mut outcomes = Vec::new();
    let count = if job.dry_run {
        let journal = journal::read(&dir.join(APPLIED))?;
        let kept = open_kept(&dir)?;
        for step in journal.steps.iter().rev() {
            outcomes.push(outcome(step, state(place, &kept, step, &job.force)?));
        }
        outcomes.iter().filter(|outcome| outcome.result() == Outcome::Applied).count() as u64
    } else {
        stdfs::File::create(dir.join(UNDOING))?.sync_all()?;
        take_all_back(place, &dir, &job.force, &mut |one| {
            outcomes.push(one);
            Ok(())
        })?
    };
    for outcome in outcomes {
        answers.tell(Answer::Outcome(outcome))?;
    }
    Ok(JobDone { apply_id: job.apply_id.clone(), count })
}

/// Takes back everything that can be, and forgets the apply. May be repeated.
pub fn take_all_back(
    place: &Place,
    dir: &Path,
    force: &[Vec<u8>],
    told: &mut dyn FnMut(ApplyOutcome) -> Result<(), JobError>,
) -> Result<u64, JobError> {
    let journal = journal::read(&dir.join(APPLIED))?;
    let kept = open_kept(dir)?;
    let mut count = 0;
    let mut restored = Vec::new();
    let mut left = Vec::new();
    for step in journal.steps.iter().rev() {
        let state = match state(place, &kept, step, force)? {
            State::Applied => take_back(place, &kept, step)?,
            other => other,
        };
        if matches!(state, State::TakenBack) {
            count += 1;
            restored.push(step);
        } else if beneath::stat(&kept, &step.kept())?.is_some() {
            left.push(step.clone());
        }
        told(outcome(step, state))?;
    }
    // Directories that their owner may not write to get their mode when everything is in them again.
    for step in restored.iter().filter(|step| step.act() == Act::RemoveDirectory && step.old_mode & 0o700 != 0o700) {
        if let Some((parent, name)) = beneath::split(&step.path)
            && let Ok(parent) = beneath::open_directory(&place.lower, parent)
        {
            chmod(&parent, name, step.old_mode)?;
        }
    }
    fs::syncfs(&place.lower)?;
    remember(place, dir, &restored)?;
    if left.is_empty() {
        stdfs::remove_file(dir.join(APPLIED))?;
        stdfs::remove_dir_all(dir)?;
    } else {
        // The versions that had to give way stay: an undo may be repeated when the files in their way are gone.
        left.reverse();
        journal::write(dir, APPLIED, &Journal { id: journal.id, steps: left })?;
        stdfs::remove_file(dir.join(UNDOING))?;
    }
    Ok(count)
}

fn open_kept(dir: &Path) -> Result<OwnedFd, JobError> {
    Ok(fs::open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// How far a step is from being taken back.
enum State {
    Applied,
    TakenBack,
    Changed(&'static str),
}

const CHANGED: State = State::Changed("it was changed since it was applied");

fn outcome(step: &Step, state: State) -> ApplyOutcome {
    let (result, reason) = match state {
        State::Applied | State::TakenBack => (Outcome::Applied, ""),
        State::Changed(reason) => (Outcome::Conflict, reason),
    };
    ApplyOutcome { path: step.path.clone(), result: result.into(), reason: reason.into() }
}

fn state(place: &Place, kept: &OwnedFd, step: &Step, force: &[Vec<u8>]) -> Result<State, JobError> {
    let now = layer::stat_path(&place.lower, &step.path)?;
    let is_after = now.as_ref().map(Identity::of) == step.after || force.contains(&step.path);
    let is_kept = || beneath::stat(kept, &step.kept()).map(|stat| stat.is_some());
    Ok(match step.act() {
        Act::Remove if !is_kept()? => State::TakenBack,
        // What came into its place in the same apply is out of the way by now.
        Act::Remove if now.is_some() => CHANGED,
        Act::Place if step.replaced && !is_kept()? => State::TakenBack,
        Act::Place if now.is_none() => {
            if step.replaced {
                State::Applied
            } else {
                State::TakenBack
            }
        }
        Act::Place if !is_after => CHANGED,
        Act::Chmod => match now {
            Some(now) if now.st_mode & 0o7777 == step.old_mode => State::TakenBack,
            // A directory's ctime tells of its entries too.
            Some(now) if layer::file_type(&now) == Type::Directory && now.st_mode & 0o7777 == step.mode => {
                State::Applied
            }
            _ if is_after => State::Applied,
            _ => CHANGED,
        },
        Act::RemoveDirectory if now.as_ref().is_some_and(|now| layer::file_type(now) != Type::Directory) => CHANGED,
        _ => State::Applied,
    })
}

fn take_back(place: &Place, kept: &OwnedFd, step: &Step) -> Result<State, JobError> {
    let (parent, name) = beneath::split(&step.path).ok_or(Errno::INVAL)?;
    let dir = match beneath::open_directory(&place.lower, parent) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(State::Changed("its directory is gone")),
        Err(error) => return Err(error.into()),
    };
    let done = match step.act() {
        Act::Remove | Act::Place if step.act() == Act::Remove || step.replaced => back(kept, &dir, name, step),
        Act::Remove | Act::Place => fs::unlinkat(&dir, name, AtFlags::empty()).map_err(JobError::from),
        Act::RemoveDirectory => make_directory(&dir, name, step.old_mode | 0o700, (step.uid, step.gid)),
        Act::MakeDirectory => match fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::NOTDIR) => return Ok(State::Changed("it is not empty any more")),
            Err(error) => Err(error.into()),
        },
        Act::Chmod => chmod(&dir, name, step.old_mode),
        Act::Unknown => Ok(()),
    };
    match done {
        Ok(()) => Ok(State::TakenBack),
        Err(error) if error.errno == Errno::EXIST.raw_os_error() => Ok(CHANGED),
        Err(error) => Err(error),
    }
}

/// Puts what was kept where it was.
fn back(kept: &OwnedFd, dir: &OwnedFd, name: &OsStr, step: &Step) -> Result<(), JobError> {
    let replace = step.act() == Act::Place;
    let rename = |from: &OwnedFd, from_name: &OsStr| match replace {
        true => fs::renameat(from, from_name, dir, name),
        false => rename_new((from, from_name), (dir, name)),
    };
    match rename(kept, &step.kept()) {
        Err(Errno::XDEV) => {
            let temporary = format!(".caisson-undo-{}", step.number);
            copying::copy_own((kept, &step.kept()), (dir, temporary.as_ref()))?;
            rename(dir, temporary.as_ref())?;
            Ok(fs::unlinkat(kept, step.kept(), AtFlags::empty())?)
        }
        other => Ok(other?),
    }
}

/// What was restored is no change that the host made: for the applies before this one, and for those to come.
fn remember(place: &Place, dir: &Path, restored: &[&Step]) -> Result<(), JobError> {
    let mut states = HashMap::new();
    for step in restored {
        if let (Some(before), Some(stat)) = (step.before, layer::stat_path(&place.lower, &step.path)?) {
            states.insert(&step.path, (before, Identity::of(&stat), step.clean));
        }
    }
    for other in journal::applies(place)?.iter().filter(|other| *other != dir && other.join(APPLIED).exists()) {
        let mut journal = journal::read(&other.join(APPLIED))?;
        let mut touched = false;
        for step in &mut journal.steps {
            if let Some((before, now, _)) = states.get(&step.path)
                && step.after == Some(*before)
            {
                step.after = Some(*now);
                touched = true;
            }
        }
        if touched {
            journal::write(other, APPLIED, &journal)?;
        }
    }
    let file = journal::restored_file(place);
    let mut known = if file.exists() { journal::read(&file)? } else { Journal::default() };
    for step in restored.iter().filter(|step| matches!(step.act(), Act::Remove | Act::RemoveDirectory)) {
        known.steps.push(Step { path: step.path.clone(), source: Some(Identity::GONE), ..Step::default() });
    }
    for (_, (_, now, clean)) in states {
        if clean {
            known.steps.push(Step { after: Some(now), ..Step::default() });
        }
    }
    journal::write(&place.layer, "restored", &known)
}
