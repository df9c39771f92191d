//! Nothing of a process that crashes inside may reach the host: no file, and no program that the host runs on crashes.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    report::Report,
    step::{During, SealError, Step},
};

/// The kernel asks a limit of 0 only where it would write a file, and runs the host's program all the same. At 1 it does neither.
/// That it stays 1 is up to the filter: who may set it may also set it to 0.
const NO_CORE: u64 = 1;

/// Kinds of memory that a core holds: none. Inherited by all that this process starts.
pub fn warm_up() {
    // Where there is no such file (gVisor), no core is made.
    let _ = fs::write("/proc/self/coredump_filter", "0");
}

pub fn forbid(report: &mut Report) -> Result<(), SealError> {
    let limit = forbid_cores().during(Step::Usage, "no core dumps")?;
    match escape(&fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default(), limit) {
        None => report.holds("limit.core", "rlimit", "no core dumps, and none for a program of the host's"),
        Some(why) => report.lacks("limit.core", "kernel", why),
    }
    Ok(())
}

/// Forbids cores to the calling process and all it starts, and gives the limit that this came to: where somebody has forbidden files
/// for good, it cannot be raised to 1. Async-signal-safe.
pub fn forbid_cores() -> rustix::io::Result<u64> {
    let hard = getrlimit(Resource::Core).maximum.unwrap_or(u64::MAX);
    let set = |value| setrlimit(Resource::Core, Rlimit { current: Some(value), maximum: Some(value) });
    if hard == 0 && set(NO_CORE).is_err() {
        return Ok(0);
    }
    set(NO_CORE).map(|()| NO_CORE)
}

/// The way by which the host would be told of a crash in spite of the limit.
fn escape(pattern: &str, limit: u64) -> Option<&'static str> {
    match pattern.as_bytes().first() {
        Some(b'@') => Some(
            "the host's core_pattern is a socket, which is told of every crash; it gets registers, and little of the memory",
        ),
        Some(b'|') if limit != NO_CORE => Some(
            "the host's core_pattern is a program, and the daemon may not raise its own limit of 0; it gets registers, and little of the memory",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_CORE, escape};

    #[test]
    fn a_limit_of_1_keeps_crashes_from_files_and_programs_but_not_from_sockets() {
        for pattern in ["core", "", "|/usr/lib/systemd/systemd-coredump %P"] {
            assert_eq!(escape(pattern, NO_CORE), None);
        }
        assert_eq!(escape("core", 0), None);
        assert!(escape("|/usr/share/apport/apport", 0).unwrap().contains("program"));
        assert!(escape("@@/run/coredump.socket", NO_CORE).unwrap().contains("socket"));
    }
}
