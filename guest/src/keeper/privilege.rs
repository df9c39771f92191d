//! Is the keeper the host's root? One that is root only in a user namespace, as in many containers,
//! is an ordinary user to the host: it has nothing to drop and can map nobody's files.

use std::{fs, sync::OnceLock};

use rustix::thread::{CapabilitySet, capabilities};

/// What giving sandboxes a uid of their own takes.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETUID).union(CapabilitySet::SETGID).union(CapabilitySet::KILL);

/// Asked once, before anything is forked.
pub fn is_host_root() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let maps_all = fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_initial(&map));
        rustix::process::geteuid().is_root() && maps_all
    })
}

/// Has it been left with what root needs? A container may have taken it.
pub fn has_what_root_needs() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED))
}

/// The host's own user namespace maps every uid to itself.
fn is_initial(uid_map: &str) -> bool {
    uid_map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::is_initial;

    #[test]
    fn only_the_hosts_own_namespace_maps_all_uids() {
        assert!(is_initial("         0          0 4294967295\n"));
        assert!(!is_initial("         0       1000          1\n         1     100000      65536\n"));
        assert!(!is_initial(""));
    }
}
