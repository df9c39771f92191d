//! Making the guest binary readable for a sandbox's uid, wherever it lies: in a mount namespace of
//! the sandbox's outer process, a private directory covers one of root's and holds only the binary.

use std::{
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, open},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
    },
    thread::UnshareFlags,
};

use super::failure::Failure;
use crate::sys::unshare::unshare;

/// Directories that are on every host and that nothing in a launch is read from; root's home is the
/// best of them, since a sandbox's uid has no business there anyway.
const COVERED: [&str; 4] = ["/root", "/mnt", "/media", "/srv"];

/// Where the guest binary will be for the program that is started.
pub fn guest_path() -> Result<String, Failure> {
    covered()
        .and_then(|directory| directory.join("guest").to_str().map(str::to_owned))
        .ok_or_else(|| Failure::new("SANDBOX_FAILED", "the host has none of /root, /mnt, /media, /srv"))
}

fn covered() -> Option<PathBuf> {
    COVERED.iter().map(Path::new).find(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir())).map(Into::into)
}

/// To be called as root, in the process that becomes the sandbox's outer one.
pub fn make_reachable(guest: &Path) -> Result<(), Errno> {
    let directory = covered().ok_or(Errno::NOENT)?;
    unshare(UnshareFlags::NEWNS)?;
    // What is unmounted on the host is let go here too; what is mounted here stays here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let binary = open_tree(CWD, guest, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("caisson", &directory, "tmpfs", flags, c"size=64k,nr_inodes=8,mode=0755")?;
    let place = directory.join("guest");
    open(&place, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o755))?;
    move_mount(binary.as_fd(), "", CWD, &place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
