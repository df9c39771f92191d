//! Takes an apply back, file by file, where nobody has changed the file since.

use std::fs as stdfs;

use rustix::{
    fs::{self, AtFlags, Mode, RenameFlags},
    io::Errno,
};

use super::{
    Answers, JobError, apply, beneath,
    journal::{self, Act, Step},
    layer::{self, Place},
};
use crate::proto::keeper::{
    ApplyOutcome, ApplyResult as Outcome, JobDone, UndoJob, workspace_message::Message as Answer,
};

pub fn run(place: &Place, job: &UndoJob, answers: Answers) -> Result<JobDone, JobError> {
    let dir = place.applies.join(&job.apply_id);
    if job.apply_id.is_empty() || job.apply_id.contains('/') || !dir.join("applied").exists() {
        return Err(JobError::new("PATH_NOT_FOUND", "there is no such apply"));
    }
    let journal = journal::read(&dir.join("applied"))?;
    let kept = fs::open(&dir, fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC, Mode::empty())?;
    let mut count = 0;
    for step in journal.steps.iter().rev() {
        let (result, reason) = match changed_since(place, step)? {
            true => (Outcome::Conflict, "it was changed since it was applied"),
            false if job.dry_run => (Outcome::Applied, ""),
            false => take_back(place, &kept, step)?,
        };
        count += u64::from(result == Outcome::Applied);
        let outcome = ApplyOutcome { path: step.path.clone(), result: result.into(), reason: reason.into() };
        answers(Answer::Outcome(outcome))?;
    }
    if !job.dry_run {
        stdfs::remove_dir_all(&dir)?;
    }
    Ok(JobDone { apply_id: job.apply_id.clone(), count })
}

fn changed_since(place: &Place, step: &Step) -> Result<bool, JobError> {
    let now = layer::stat_path(&place.lower, &step.path)?;
    Ok(match step.act() {
        Act::Remove | Act::RemoveDirectory => now.is_some() && step.after_inode == 0,
        Act::MakeDirectory => false,
        _ => now.is_none_or(|now| (now.st_ino, layer::ctime_ns(&now)) != (step.after_inode, step.after_ctime)),
    })
}

fn take_back(place: &Place, kept: &std::os::fd::OwnedFd, step: &Step) -> Result<(Outcome, &'static str), JobError> {
    let (parent, name) = beneath::split(&step.path).ok_or(Errno::INVAL)?;
    let dir = match beneath::open_directory(&place.lower, parent) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok((Outcome::Conflict, "its directory is gone")),
        Err(error) => return Err(error.into()),
    };
    let back = |replace: bool| -> Result<(), JobError> {
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match fs::renameat_with(kept, step.kept(), &dir, name, flags) {
            Err(Errno::XDEV) => {
                let temporary = format!(".caisson-undo-{}", step.number);
                apply::copy((kept, &step.kept()), (&dir, temporary.as_ref()))?;
                Ok(fs::renameat_with(&dir, &*temporary, &dir, name, flags)?)
            }
            other => Ok(other?),
        }
    };
    match step.act() {
        Act::Remove => back(false)?,
        Act::Place if step.replaced => back(true)?,
        Act::Place => fs::unlinkat(&dir, name, AtFlags::empty())?,
        Act::RemoveDirectory => match fs::mkdirat(&dir, name, Mode::from_raw_mode(step.old_mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        },
        Act::MakeDirectory => match fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY) => return Ok((Outcome::Conflict, "it is not empty any more")),
            Err(error) => return Err(error.into()),
        },
        Act::Chmod => {
            let flags = fs::OFlags::RDONLY | fs::OFlags::NOFOLLOW | fs::OFlags::NONBLOCK | fs::OFlags::CLOEXEC;
            fs::fchmod(fs::openat(&dir, name, flags, Mode::empty())?, Mode::from_raw_mode(step.old_mode))?;
        }
        Act::Unknown => {}
    }
    Ok((Outcome::Applied, ""))
}
