//! No program gains privileges when it starts, and nobody reads or traces PID 1.

use rustix::process::{DumpableBehavior, Signal, set_parent_process_death_signal};

use super::{
    report::Report,
    step::{During, SealError, Step},
};

pub fn renounce(report: &mut Report) -> Result<(), SealError> {
    gain_none(report)?;
    hide(report)
}

pub fn gain_none(report: &mut Report) -> Result<(), SealError> {
    rustix::thread::set_no_new_privs(true).during(Step::Privileges, "no_new_privs")?;
    report.holds("no_new_privs", "prctl", "");
    Ok(())
}

pub fn hide(report: &mut Report) -> Result<(), SealError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Step::Privileges, "dumpable")?;
    // Cleared by the change of uid: PID 1, and all that is in here with it, dies with its outer process.
    set_parent_process_death_signal(Some(Signal::KILL)).during(Step::Privileges, "parent death signal")?;
    report.holds("guest.undumpable", "prctl", "PID 1 cannot be read, written or traced from inside");
    Ok(())
}
