//! No namespace may be made inside the sandbox, beside the one that the guest itself enters next.

use std::{fs, io::ErrorKind};

use super::{
    report::Report,
    step::{During, SealError, Step},
};

const FOLDER: &str = "/proc/sys/user";

/// Bounds that are counted in the sandbox's outer user namespace, which nobody inside can leave.
const NONE_MORE: [&str; 7] = [
    "max_mnt_namespaces",
    "max_net_namespaces",
    "max_pid_namespaces",
    "max_ipc_namespaces",
    "max_uts_namespaces",
    "max_cgroup_namespaces",
    "max_time_namespaces",
];

pub fn forbid(nested: bool, report: &mut Report) -> Result<(), SealError> {
    if nested {
        report.lacks("userns_limit", "profile", "`nested` allows user namespaces inside");
        return Ok(());
    }
    // One, because the step that follows makes it; it then counts for as long as the sandbox lives.
    let limits = NONE_MORE.map(|name| (name, "0")).into_iter().chain([("max_user_namespaces", "1")]);
    for (name, limit) in limits {
        match fs::write(format!("{FOLDER}/{name}"), limit) {
            // A kind of namespace that this kernel does not have.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.during(Step::UserNamespaces, format!("{FOLDER}/{name}"))?,
        }
    }
    report.holds("userns_limit", "sysctl user.max_*_namespaces", "no namespace can be made inside");
    Ok(())
}
