//! Mounts laid over what commands must not see or change.

use std::{fs, os::fd::OwnedFd};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
    mount::{MountAttrFlags, OpenTreeFlags, mount_bind_recursive, open_tree},
};

use super::{
    mounts::move_to,
    place::{self, Ground},
    report::Report,
    step::{During, SealError, Step},
    tmpfs,
};
use crate::sys;

/// An empty file that nobody may open stands here, to be laid over denied files.
const NOTHING: &str = "/.caisson-nothing";

const UNTOUCHABLE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Parts of /proc through which a kernel is configured.
pub const PROC_READ_ONLY: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// Lays each over itself, read-only. By the older calls: the newer ones make a mount namespace in passing,
/// and by now there may be none.
pub fn protect_proc() -> Result<(), SealError> {
    for path in PROC_READ_ONLY {
        match place::existing(path) {
            Err(Errno::NOENT) => continue,
            other => other.during(Step::Mounts, path)?,
        };
        mount_bind_recursive(path, path).during(Step::Mounts, format!("covering {path}"))?;
        let cover = place::existing(path).during(Step::Mounts, path)?;
        sys::mount::add_attributes(&cover, UNTOUCHABLE, true).during(Step::Mounts, path)?;
    }
    Ok(())
}

/// Covers each path, or what it links to, with something that cannot be opened. A cover moves with the
/// directories above it, so that renaming them uncovers nothing. Returns where the covers are.
pub fn deny_read(paths: &[String], ground: &Ground, report: &mut Report) -> Result<Vec<String>, SealError> {
    let mut covered = Vec::new();
    let mut absent = Vec::new();
    for path in paths {
        // Links are resolved inside the sandbox: what they lead to is what would be read.
        let Ok(real) = fs::canonicalize(path) else {
            absent.push(path.as_str());
            continue;
        };
        let real = real.to_string_lossy().into_owned();
        if covered.contains(&real) {
            continue;
        }
        let place = place::existing(&real).during(Step::Mounts, path)?;
        let kind = rustix::fs::fstat(&place).during(Step::Mounts, path)?.st_mode;
        let cover = if FileType::from_raw_mode(kind).is_dir() {
            tmpfs::make("000", 1, UNTOUCHABLE).during(Step::Mounts, "an unreadable directory")?
        } else {
            nothing(ground)?
        };
        move_to(&cover, &place).during(Step::Mounts, format!("covering {path}"))?;
        sys::mount::add_attributes(&cover, UNTOUCHABLE, false).during(Step::Mounts, path)?;
        covered.push(real);
    }
    if paths.is_empty() {
        return Ok(covered);
    }
    let mut detail = format!("{} paths covered", covered.len());
    if !absent.is_empty() {
        detail.push_str(&format!("; nothing was at {}", absent.join(", ")));
    }
    report.holds("paths.deny_read", "mounts", detail);
    Ok(covered)
}

fn nothing(ground: &Ground) -> Result<OwnedFd, SealError> {
    let file = match place::existing(NOTHING) {
        Err(Errno::NOENT) => {
            let root = ground.directory("/").during(Step::Mounts, "/")?;
            ground.write(&root, NOTHING.trim_start_matches('/'), b"", 0o000).during(Step::Mounts, NOTHING)?;
            rustix::fs::open(NOTHING, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        }
        other => other,
    };
    let file = file.during(Step::Mounts, NOTHING)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(&file, "", flags).during(Step::Mounts, NOTHING)
}
