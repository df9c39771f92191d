//! What this machine lets the keeper do, found out by doing it.

use std::fs;

use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    thread::{Gid, Uid, UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::{
    failure::Failure,
    privilege::{has_what_root_needs, is_host_root},
};
use crate::{
    build_id::BUILD_ID,
    proto::keeper::{Identity, keeper_reply::Reply},
    sys::{landlock, unshare::unshare},
};

/// Nobody's uid: the first of the range that sandboxes of a root daemon get theirs from.
const UNUSED_UID: u32 = 0x6C00_0000;

/// What root does first.
const DROPPING: &str = "changing to an unused uid";

/// In a worker, which is spoilt afterwards.
pub fn identify() -> Result<Reply, Failure> {
    let uid = rustix::process::geteuid().as_raw();
    let can_change_uid = is_host_root() && has_what_root_needs();
    let tried = try_user_namespace();
    Ok(Reply::Identity(Identity {
        build: BUILD_ID.into(),
        uid,
        can_change_uid,
        landlock_abi: landlock::abi(),
        user_namespaces: tried.is_ok(),
        user_namespaces_reason: tried.err().map(explain).unwrap_or_default(),
    }))
}

/// The way that a sandbox goes: drop root, leave the user namespace, map one's own uid, mount something.
fn try_user_namespace() -> Result<(), (&'static str, Errno)> {
    let at = |doing: &'static str| move |errno: Errno| (doing, errno);
    let file =
        |doing: &'static str| move |error: std::io::Error| (doing, Errno::from_io_error(&error).unwrap_or(Errno::IO));
    if is_host_root() {
        if !has_what_root_needs() {
            return Err((DROPPING, Errno::PERM));
        }
        drop_to(UNUSED_UID).map_err(at(DROPPING))?;
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(at("making a user namespace"))?;
    fs::write("/proc/self/setgroups", "deny").map_err(file("giving up groups in a user namespace"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).map_err(file("mapping the gid in a user namespace"))?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).map_err(file("mapping the uid in a user namespace"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .and_then(|()| mount("caisson", "/tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"size=4k"))
        .map_err(at("mounting in a user namespace"))
}

/// Root's files in /proc/self become the new user's only with its dumpable flag, which the change of uid clears.
fn drop_to(id: u32) -> Result<(), Errno> {
    set_thread_groups(&[])?;
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
}

/// The usual obstacles by name, so that their way out can be told.
fn explain((doing, errno): (&'static str, Errno)) -> String {
    let tried = format!("{doing}: {}", std::io::Error::from(errno));
    let sysctl = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).map(|text| text.trim().to_owned());
    if sysctl("user/max_user_namespaces").is_ok_and(|value| value == "0") {
        return format!("user.max_user_namespaces is 0 ({tried})");
    }
    if sysctl("kernel/unprivileged_userns_clone").is_ok_and(|value| value == "0") {
        return format!("kernel.unprivileged_userns_clone is 0 ({tried})");
    }
    if sysctl("kernel/apparmor_restrict_unprivileged_userns").is_ok_and(|value| value == "1") {
        return format!("kernel.apparmor_restrict_unprivileged_userns is 1 ({tried})");
    }
    match errno {
        Errno::INVAL | Errno::NOSYS => format!("the kernel has no user namespaces ({tried})"),
        Errno::NOSPC | Errno::USERS => format!("the limit of user namespaces is reached ({tried})"),
        Errno::PERM if is_filtered() => {
            format!("a seccomp filter around this machine or container forbids it ({tried})")
        }
        _ => tried,
    }
}

fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"))
}
