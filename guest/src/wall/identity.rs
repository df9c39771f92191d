//! Becoming the user: a nested user namespace in which the sandbox's one uid has a number other than 0.
//! Its owner's powers over the mounts and the network end here.

use std::{fs, os::unix::fs::MetadataExt};

use rustix::thread::UnshareFlags;

use super::{
    plan::Plan,
    report::Report,
    step::{During, SealError, Step},
};
use crate::sys;

pub fn become_user(plan: &Plan<'_>, report: &mut Report) -> Result<(), SealError> {
    refuse_host_root()?;
    let (uid, gid) = (plan.seal.uid, plan.seal.gid);
    sys::unshare::unshare(UnshareFlags::NEWUSER).during(Step::Identity, "a nested user namespace")?;
    // A process may map its own single id by itself; groups only after giving up setgroups.
    for (file, content) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("{uid} 0 1")), ("gid_map", format!("{gid} 0 1"))]
    {
        fs::write(format!("/proc/self/{file}"), content).during(Step::Identity, file)?;
    }
    let (real, effective) = (rustix::process::getuid().as_raw(), rustix::process::geteuid().as_raw());
    if (real, effective) != (uid, uid) || rustix::process::getgid().as_raw() != gid {
        return Err(Step::Identity.error(format!("the user is {real}/{effective} and not {uid}")));
    }
    report.holds("namespace.user", "nested user namespace", format!("commands run as {uid}:{gid}"));
    report_groups(gid, report)
}

/// A file that only the host's root owns would be ours if we were that root.
fn refuse_host_root() -> Result<(), SealError> {
    match fs::metadata("/proc/sys/kernel/core_pattern") {
        Ok(file) if file.uid() == rustix::process::getuid().as_raw() => {
            Err(Step::Identity.error("the sandbox's user is the host's root; the keeper must change to another one"))
        }
        _ => Ok(()),
    }
}

/// Groups of the user who started the daemon cannot be given up without privilege.
fn report_groups(gid: u32, report: &mut Report) -> Result<(), SealError> {
    let groups = rustix::process::getgroups().during(Step::Identity, "groups")?;
    match groups.iter().filter(|group| group.as_raw() != gid).count() {
        0 => report.holds("groups", "setgroups", "no supplementary group"),
        count => {
            report.lacks("groups", "setgroups", format!("{count} groups of the host's user count on mounted files"))
        }
    }
    Ok(())
}
