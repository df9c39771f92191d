//! Looking at the finished wall from inside, and refusing to serve when something is not as meant.

use std::{fs, os::fd::RawFd};

use rustix::fs::FileType;

use super::{
    mountinfo::{self, MountEntry},
    mounts::Layout,
    report::Report,
    step::{During, SealError, Step},
};
use crate::sys;

pub fn look(layout: &Layout, keep: &[RawFd], report: &mut Report) -> Result<(), SealError> {
    check_mounts(&mountinfo::read().during(Step::Check, "/proc/self/mountinfo")?, layout)?;
    report.holds("mounts.readonly_root", "mount flags", format!("writable: {}", layout.writable.join(", ")));
    check_descriptors(keep)?;
    report.holds("descriptors", "close_range", "");
    check_status(&fs::read_to_string("/proc/self/status").during(Step::Check, "/proc/self/status")?)?;
    if std::process::id() == 1 {
        report.holds("namespace.pid", "pid namespace", "");
    } else {
        report.lacks("namespace.pid", "pid namespace", "the guest is not the first process");
    }
    report.holds("namespace.mount", "mount namespace", "");
    report_namespaces(report);
    Ok(())
}

/// Nothing is there but what is meant to be, nothing is writable but what is meant to be, nothing brings
/// devices or set-uid programs in, and no whole file system of the host shows.
fn check_mounts(mounts: &[MountEntry], layout: &Layout) -> Result<(), SealError> {
    for mount in mounts {
        let path = mount.path.as_str();
        let fail = |what: &str| Err(Step::Check.error(format!("{path} is {what}")));
        let device = path.starts_with("/dev/") && (mount.kind == "devpts" || is_device(path));
        if !layout.known.contains(path) {
            return fail("mounted and nobody asked for it");
        }
        if !mount.nosuid {
            return fail("mounted without nosuid");
        }
        if !mount.nodev && !device {
            return fail("mounted without nodev");
        }
        let may_be_whole = is_virtual(&mount.kind) || path == "/usr" || layout.asked.contains(path);
        if mount.root == "/" && !may_be_whole {
            return fail("the whole of a file system of the host");
        }
        let meant = device || path == "/proc" || layout.writable.iter().any(|writable| writable == path);
        if !mount.read_only && !meant {
            return fail("writable");
        }
    }
    Ok(())
}

/// File systems that are made for the sandbox or that the kernel makes up.
fn is_virtual(kind: &str) -> bool {
    matches!(kind, "tmpfs" | "proc" | "devpts" | "overlay" | "mqueue")
}

fn is_device(path: &str) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_char_device())
}

/// Only what is kept is open, and none of it is a directory through which the outside could be read.
pub fn check_descriptors(keep: &[RawFd]) -> Result<(), SealError> {
    let folder = fs::read_dir("/proc/self/fd").during(Step::Check, "/proc/self/fd")?;
    let open: Vec<RawFd> = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in open {
        let Some(descriptor) = sys::descriptors::borrow(number) else { continue };
        let Ok(stat) = rustix::fs::fstat(descriptor) else {
            // The descriptor of the listing itself.
            continue;
        };
        if number > 2 && !keep.contains(&number) {
            return Err(Step::Check.error(format!("descriptor {number} was left open")));
        }
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            return Err(Step::Check.error(format!("descriptor {number} is a directory")));
        }
    }
    Ok(())
}

fn check_status(status: &str) -> Result<(), SealError> {
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim).unwrap_or("absent")
    };
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        if field(name).chars().any(|digit| digit != '0') {
            return Err(Step::Check.error(format!("{name} is {}", field(name))));
        }
    }
    for (name, expected) in [("NoNewPrivs", "1"), ("Seccomp", "2"), ("Threads", "1")] {
        if field(name) != expected {
            return Err(Step::Check.error(format!("{name} is {} and not {expected}", field(name))));
        }
    }
    Ok(())
}

/// The kernel's first namespaces have well-known numbers.
fn report_namespaces(report: &mut Report) {
    for (file, name, first) in [
        ("ipc", "namespace.ipc", 0xefff_ffff_u32),
        ("uts", "namespace.uts", 0xefff_fffe),
        ("cgroup", "namespace.cgroup", 0xefff_fffb),
    ] {
        let by = format!("{file} namespace");
        match fs::read_link(format!("/proc/self/ns/{file}")) {
            Ok(link) if link.to_string_lossy() != format!("{file}:[{first}]") => report.holds(name, &by, ""),
            Ok(_) => report.lacks(name, &by, "shared with the host"),
            Err(error) => report.lacks(name, &by, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(path: &str, kind: &str) -> MountEntry {
        MountEntry {
            device: 1,
            root: "/part".into(),
            path: path.into(),
            kind: kind.into(),
            read_only: true,
            nosuid: true,
            nodev: true,
        }
    }

    fn layout(writable: &[&str], mounts: &[MountEntry]) -> Layout {
        Layout {
            writable: writable.iter().map(|path| (*path).into()).collect(),
            known: mounts.iter().map(|mount| mount.path.clone()).collect(),
            ..Layout::default()
        }
    }

    fn passes(writable: &[&str], mounts: &[MountEntry]) -> bool {
        check_mounts(mounts, &layout(writable, mounts)).is_ok()
    }

    #[test]
    fn only_what_is_meant_is_writable() {
        let writable = |path: &str, kind: &str| MountEntry { read_only: false, ..mount(path, kind) };
        assert!(passes(&["/tmp"], &[writable("/tmp", "tmpfs"), writable("/proc", "proc")]));
        assert!(!passes(&["/tmp"], &[writable("/", "tmpfs")]));
        assert!(!passes(&["/tmp"], &[writable("/tmp/x", "ext4")]));
        assert!(!passes(&["/tmp"], &[writable("/proc/sys", "proc")]));
    }

    #[test]
    fn a_mount_that_nobody_asked_for_is_noticed() {
        assert!(check_mounts(&[mount("/oldroot", "ext4")], &layout(&[], &[])).is_err());
    }

    #[test]
    fn the_hosts_root_set_uid_programs_and_devices_are_noticed() {
        assert!(!passes(&[], &[MountEntry { root: "/".into(), ..mount("/x", "ext4") }]));
        assert!(passes(&[], &[MountEntry { root: "/".into(), ..mount("/usr", "ext4") }]));
        assert!(!passes(&[], &[MountEntry { nosuid: false, ..mount("/usr", "ext4") }]));
        assert!(!passes(&[], &[MountEntry { nodev: false, ..mount("/usr", "ext4") }]));
        assert!(passes(&[], &[MountEntry { nodev: false, ..mount("/dev/null", "devtmpfs") }]));
        assert!(!passes(&[], &[MountEntry { nodev: false, ..mount("/dev/shm", "devtmpfs") }]));
    }

    #[test]
    fn a_status_that_shows_power_is_refused() {
        let good =
            "CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\nCapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\nThreads:\t1\n";
        assert!(check_status(good).is_ok());
        assert!(check_status(&good.replace("CapBnd:\t0", "CapBnd:\t1f")).is_err());
        assert!(check_status(&good.replace("Seccomp:\t2", "Seccomp:\t0")).is_err());
        assert!(check_status("").is_err());
    }
}
