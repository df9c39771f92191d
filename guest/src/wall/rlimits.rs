//! Bounds per process, and on the number of processes: counted per user namespace, so per sandbox.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    cores,
    report::Report,
    step::{During, SealError, Step},
};
use crate::proto::link::Rlimits;

/// What the guest may start beyond the commands' bound, so that a fork bomb cannot lock it out.
const GUEST_PROCESSES: u64 = 32;

struct Bounds {
    open_files: Option<u64>,
    processes: Option<u64>,
    file_size: Option<u64>,
}

static COMMAND: OnceLock<Bounds> = OnceLock::new();

/// Bounds PID 1 and remembers what commands get. Must come before the nested user namespace, which takes
/// over the bound on processes for all that will ever live in it.
pub fn bound(asked: Option<&Rlimits>, report: &mut Report) -> Result<(), SealError> {
    let asked = asked.copied().unwrap_or_default();
    let some = |value: u64| (value > 0).then_some(value);
    let bounds = Bounds {
        open_files: some(asked.open_files).map(|value| value.min(hard(Resource::Nofile))),
        processes: some(asked.processes),
        file_size: some(asked.file_size),
    };
    cores::forbid(report)?;
    if let Some(processes) = bounds.processes {
        let with_guest = processes.saturating_add(GUEST_PROCESSES).min(hard(Resource::Nproc));
        set(Resource::Nproc, with_guest).during(Step::Usage, "the bound on processes")?;
    }
    for (name, bound) in
        [("limit.files", bounds.open_files), ("limit.pids", bounds.processes), ("limit.file_size", bounds.file_size)]
    {
        if let Some(bound) = bound {
            report.holds(name, "rlimit", bound.to_string());
        }
    }
    let _ = COMMAND.set(bounds);
    Ok(())
}

/// A command's bound on open files, where it would have had this one.
pub fn open_files(usual: Rlimit) -> Rlimit {
    match COMMAND.get().and_then(|bounds| bounds.open_files) {
        Some(bound) => Rlimit { current: Some(bound), maximum: Some(bound) },
        None => usual,
    }
}

/// Bounds the calling process as a command, save its open files: PID 1 knows them. Async-signal-safe.
pub fn bound_command() -> Result<(), i32> {
    let Some(bounds) = COMMAND.get() else { return Ok(()) };
    for (resource, bound) in [(Resource::Nproc, bounds.processes), (Resource::Fsize, bounds.file_size)] {
        if let Some(bound) = bound {
            set(resource, bound).map_err(rustix::io::Errno::raw_os_error)?;
        }
    }
    Ok(())
}

fn hard(resource: Resource) -> u64 {
    getrlimit(resource).maximum.unwrap_or(u64::MAX)
}

fn set(resource: Resource, value: u64) -> rustix::io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
}
