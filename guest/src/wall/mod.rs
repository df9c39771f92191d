//! Closing the wall: the order is the one that holds (docs/wall.md), each step with its own exit code.

mod capabilities;
mod check;
mod cores;
mod covers;
mod descriptors;
mod etc;
mod gvisor;
mod identity;
mod iptables;
mod landlock;
mod mountinfo;
mod mounts;
mod network;
mod oom;
mod overlay;
mod place;
mod plan;
mod privileges;
mod redirect;
mod report;
mod rlimits;
mod root;
mod seccomp;
mod step;
mod tmpfs;
mod userns;

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::proto::link::{self, Surroundings};
use report::Report;

pub use cores::forbid_cores;
pub use etc::{hosts, machine_id};
pub use gvisor::make_door;
pub use network::{FALLBACK_PORTS, catches_every_port};
pub use oom::expendable;
pub use rlimits::open_files;
pub use step::SealError;

/// A world that only its mounts are missing from.
#[derive(Default)]
pub struct Prepared {
    ground: mounts::Prepared,
    report: Report,
}

/// The part of sealing that needs no mounts: done while they are on their way. May be repeated.
pub fn prepare(seal: &link::Seal) -> Result<Prepared, SealError> {
    plan::check(seal)?;
    let mut report = Report::default();
    // What the guest and its commands make can be read by all of the sandbox's programs.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let ground = match seal.surroundings() {
        Surroundings::Unspecified => mounts::prepare(seal, &mut report)?,
        Surroundings::Gvisor => gvisor::prepare(seal, &mut report)?,
    };
    if !NETWORK_IS_READY.load(Ordering::Relaxed) {
        network::prepare()?;
    }
    network::report(&mut report);
    Ok(Prepared { ground, report })
}

/// Makes this process, PID 1 of a sandbox, and everything it will ever start, live behind the wall.
/// Must be called while there is a single thread. `keep` are descriptors that stay open; standard streams
/// that are not among them become /dev/null.
pub fn seal(
    seal: &link::Seal,
    prepared: Prepared,
    mounts: Vec<OwnedFd>,
    keep: &[i32],
) -> Result<Vec<link::Hold>, SealError> {
    let plan = plan::read(seal, mounts)?;
    let Prepared { ground, mut report } = prepared;
    if seal.surroundings() == Surroundings::Gvisor {
        gvisor::seal(&plan, keep, &mut report)?;
        report.require(&seal.required)?;
        return Ok(report.finish());
    }
    let layout = mounts::attach(&plan, ground, &mut report)?;
    let mut keep = keep.to_vec();
    keep.extend(oom::prepare());
    let plan = plan.without_descriptors();
    descriptors::close(&keep, &seal.workdir)?;
    userns::forbid(plan.groups.nested, &mut report)?;
    covers::protect_proc()?;
    rlimits::bound(seal.rlimits.as_ref(), &mut report)?;
    identity::become_user(&plan, &mut report)?;
    capabilities::drop_all(Surroundings::Unspecified, &mut report)?;
    privileges::renounce(&mut report)?;
    landlock::restrict(&plan, &layout, &mut report)?;
    seccomp::attach(plan.groups, &mut report)?;
    check::look(&layout, &keep, &mut report)?;
    report.require(&seal.required)?;
    Ok(report.finish())
}

/// The network namespace is as it has to be. Nobody but PID 1 could change it since.
static NETWORK_IS_READY: AtomicBool = AtomicBool::new(false);

/// Does ahead, while nobody waits for the sandbox, what takes long and is the same for all of them. What fails here is
/// tried again when the sandbox is sealed, and fails then.
pub fn warm_up() {
    NETWORK_IS_READY.store(network::prepare().is_ok(), Ordering::Relaxed);
    mounts::warm_up();
    cores::warm_up();
    seccomp::warm_up();
}

/// What a command gets beyond PID 1's wall: its own limits, and no openat2. Called in the child between
/// fork and exec. Async-signal-safe: allocates nothing.
pub fn confine_command() -> Result<(), i32> {
    rlimits::bound_command()?;
    seccomp::attach_to_command()
}
