//! The wall in gVisor. The kernel that commands talk to is a program of its own, with seccomp around it on the host;
//! inside, the guest is root of that kernel and gives all of it up. What gVisor lacks is reported, not skipped.

mod check;
mod door;
mod identity;
mod world;

use std::{io, os::fd::OwnedFd, path::Path, sync::OnceLock};

use rustix::process::{WaitOptions, getpid, set_child_subreaper, waitpid};

use super::{
    capabilities, descriptors, landlock,
    mounts::{Layout, Prepared},
    oom,
    plan::Plan,
    privileges,
    report::Report,
    rlimits, seccomp,
    step::SealError,
};
use crate::{
    proto::link::{Seal, Surroundings},
    sys::worker::{Forked, exit_now, fork},
};

/// The door, and ahead of the seal, while nobody waits, what is the same for all sandboxes. What fails here is tried
/// again at the seal, and fails then.
pub fn make_door(path: &Path) -> io::Result<OwnedFd> {
    let door = door::make_door(path)?;
    let _ = world::remove_needless();
    HAS_SUBREAPERS.get_or_init(has_subreapers);
    Ok(door)
}

static HAS_SUBREAPERS: OnceLock<bool> = OnceLock::new();

/// Bounds and furnishes what the sandbox was born with. May be repeated.
pub fn prepare(seal: &Seal, report: &mut Report) -> Result<Prepared, SealError> {
    world::furnish(seal, report)?;
    Ok(Prepared::default())
}

/// The same order as elsewhere, without the steps that gVisor has nothing for.
pub fn seal(plan: &Plan<'_>, keep: &[i32], report: &mut Report) -> Result<(), SealError> {
    world::complete(plan, report)?;
    let mut keep = keep.to_vec();
    keep.extend(oom::prepare());
    descriptors::close(&keep, &plan.seal.workdir)?;
    report.lacks("userns_limit", "gVisor", "gVisor has no such bound; new namespaces are refused by the filter alone");
    match HAS_SUBREAPERS.get_or_init(has_subreapers) {
        true => report.holds("commands.tree", "subreaper", ""),
        false => report.lacks("commands.tree", "gVisor", "a double fork leaves its command's tree, not the sandbox"),
    }
    rlimits::bound(plan.seal.rlimits.as_ref(), report)?;
    report.retract("limit.pids", "gVisor", "gVisor does not count a user's processes");
    identity::keep_capabilities()?;
    identity::become_user(plan, report)?;
    capabilities::drop_all(Surroundings::Gvisor, report)?;
    privileges::gain_none(report)?;
    landlock::restrict(plan, &Layout::default(), report)?;
    seccomp::attach_sparing_init(plan.groups, report)?;
    check::look(plan.seal, &keep, report)?;
    // Last: gVisor then closes this process's own files in /proc to itself.
    privileges::hide(report)?;
    report.retract(
        "guest.undumpable",
        "gVisor",
        "PID 1's memory is closed, its list of files and its mappings are not",
    );
    Ok(())
}

/// Asked in a child: for the first process every gVisor says yes, because it is one by itself.
fn has_subreapers() -> bool {
    match fork() {
        Ok(Forked::Child) => exit_now(i32::from(set_child_subreaper(Some(getpid())).is_err())),
        Ok(Forked::Parent(pid)) => {
            let ended = waitpid(Some(pid), WaitOptions::empty());
            ended.is_ok_and(|ended| ended.is_some_and(|(_, status)| status.exit_status() == Some(0)))
        }
        Err(_) => false,
    }
}
