//! Giving up everything but the directories that a job is about.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    thread::{Gid, Uid, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::sys::landlock::{abi, allow_beneath, create_ruleset, restrict_self};

/// Everything that Landlock knows about files up to each ABI.
const SINCE_1: u64 = (1 << 13) - 1;
const REFER_SINCE_2: u64 = 1 << 13;
const TRUNCATE_SINCE_3: u64 = 1 << 14;
const IOCTL_SINCE_5: u64 = 1 << 15;

/// A directory of the daemon's, whose path has no links.
pub fn open(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// From here on this process is nobody in particular and reaches nothing but these directories.
pub fn enter(uid: u32, directories: &[&OwnedFd]) -> Result<(), Errno> {
    set_no_new_privs(true)?;
    if uid != 0 {
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
    }
    let abi = abi();
    if abi == 0 {
        return Ok(());
    }
    let mut handled = SINCE_1;
    for (since, access) in [(2, REFER_SINCE_2), (3, TRUNCATE_SINCE_3), (5, IOCTL_SINCE_5)] {
        if abi >= since {
            handled |= access;
        }
    }
    let ruleset = create_ruleset(handled)?;
    for directory in directories {
        // The same for all: a hard link may not gain rights by its new place.
        allow_beneath(&ruleset, directory, handled)?;
    }
    restrict_self(&ruleset, 0)
}
