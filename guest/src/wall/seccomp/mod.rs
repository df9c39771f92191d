//! The system-call filter of PID 1 and everything it starts, and the small one that commands get beside it.

mod allow;
mod arguments;
mod number;
mod program;
mod refuse;

use std::sync::OnceLock;

use super::{
    plan::Groups,
    report::Report,
    step::{During, SealError, Step},
};
use crate::sys::{self, seccomp::Instruction};
use program::{ALLOW, Tree, assemble, refuse_only};

/// Commands cannot use openat2: the mode it creates files with is behind a pointer, where a filter sees
/// no set-uid bit. Programs take ENOSYS as an older kernel and use openat.
static COMMAND: [Instruction; 4] = refuse_only(libc::SYS_openat2 as u32, libc::ENOSYS);

pub fn attach(groups: Groups, report: &mut Report) -> Result<(), SealError> {
    let made;
    let filter = if groups == Groups::default() {
        usual()
    } else {
        made = assembled(rules(groups));
        &made
    };
    attach_assembled(filter, groups, report)
}

/// The same where a kernel lets anybody kill the first process, which Linux does not: a signal to it is refused.
pub fn attach_sparing_init(groups: Groups, report: &mut Report) -> Result<(), SealError> {
    let mut rules = rules(groups);
    rules.retain(|(number, _)| !arguments::SIGNALS.contains(number));
    rules.extend(arguments::SIGNALS.iter().map(|&number| (number, arguments::not_to_init())));
    attach_assembled(&assembled(rules), groups, report)
}

fn attach_assembled(filter: &[Instruction], groups: Groups, report: &mut Report) -> Result<(), SealError> {
    sys::seccomp::attach(filter).during(Step::Seccomp, "the filter")?;
    let mut detail = String::from("allowlist; unknown calls and foreign ABIs get ENOSYS");
    for (on, name) in [(groups.debug, "debug"), (groups.nested, "nested")] {
        if on {
            detail.push_str("; with ");
            detail.push_str(name);
        }
    }
    report.holds("seccomp", "filter", detail);
    Ok(())
}

/// The filter of a sandbox with no option, which most are.
fn usual() -> &'static [Instruction] {
    static USUAL: OnceLock<Vec<Instruction>> = OnceLock::new();
    USUAL.get_or_init(|| assembled(rules(Groups::default())))
}

/// Assembles the usual filter ahead.
pub fn warm_up() {
    usual();
}

/// Async-signal-safe.
pub fn attach_to_command() -> Result<(), i32> {
    sys::seccomp::attach(&COMMAND).map_err(rustix::io::Errno::raw_os_error)
}

fn rules(groups: Groups) -> Vec<(i64, Tree)> {
    let always = [allow::FILES, allow::MEMORY, allow::PROCESSES, allow::EVENTS, allow::SOCKETS, allow::LEGACY];
    let never = [refuse::MOUNTING, refuse::EXPOSED, refuse::MACHINE, refuse::LEGACY];
    let allowed_if = |on: bool| if on { ALLOW } else { program::refuse(libc::EPERM) };
    let mut rules: Vec<(i64, Tree)> = arguments::rules(groups);
    rules.extend(always.into_iter().flatten().map(|&number| (number, ALLOW)));
    rules.extend(never.into_iter().flatten().map(|&number| (number, program::refuse(libc::EPERM))));
    rules.extend(refuse::TRACING.iter().map(|&number| (number, allowed_if(groups.debug))));
    rules.extend(refuse::NESTING.iter().map(|&number| (number, allowed_if(groups.nested))));
    rules
}

fn assembled(rules: Vec<(i64, Tree)>) -> Vec<Instruction> {
    assemble(
        number::ARCH,
        number::FIRST_FOREIGN,
        rules.into_iter().map(|(number, tree)| (number as u32, tree)).collect(),
    )
}

#[cfg(test)]
mod tests;
