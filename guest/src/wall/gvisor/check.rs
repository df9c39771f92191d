//! Looking at the finished wall from inside gVisor, by what can be tried rather than by what its /proc leaves out.

use std::fs;

use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    process::{getgid, getuid},
    thread::no_new_privs,
};

use crate::{
    proto::link::Seal,
    wall::{
        check::check_descriptors,
        report::Report,
        step::{During, SealError, Step},
    },
};

/// Nobody but gVisor's root, whom there is no way to become, writes here.
const CLOSED: [&str; 5] = ["/", "/dev", "/etc", "/usr", "/proc/sys"];

pub fn look(seal: &Seal, keep: &[i32], report: &mut Report) -> Result<(), SealError> {
    let fail = |what: String| Err(Step::Check.error(what));
    if (getuid().as_raw(), getgid().as_raw()) != (seal.uid, seal.gid) {
        return fail(format!("the user is {} and not {}", getuid().as_raw(), seal.uid));
    }
    if !no_new_privs().during(Step::Check, "no_new_privs")? {
        return fail("no_new_privs is not set".into());
    }
    let status = fs::read_to_string("/proc/self/status").during(Step::Check, "/proc/self/status")?;
    for expected in ["CapInh", "CapPrm", "CapEff", "CapBnd"] {
        let value = status.lines().find_map(|line| line.strip_prefix(expected)?.strip_prefix(":\t"));
        if value.is_none_or(|value| value.chars().any(|digit| digit != '0')) {
            return fail(format!("{expected} is {}", value.unwrap_or("absent")));
        }
    }
    if !status.lines().any(|line| line == "Seccomp:\t2") {
        return fail("the filter is not there".into());
    }
    for path in CLOSED {
        if accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok() {
            return fail(format!("{path} is writable"));
        }
    }
    report.holds("mounts.readonly_root", "owner and mode", "only the sandbox's own directories are the user's");
    check_descriptors(keep)?;
    report.holds("descriptors", "close_range", "");
    Ok(())
}
