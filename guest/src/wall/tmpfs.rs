//! The sandbox's private tmpfs mounts: their bounds, and the empty ones used as covers.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    io,
    mount::{
        FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, fsconfig_create, fsconfig_reconfigure,
        fsconfig_set_string, fsmount, fsopen, fspick,
    },
};

/// Bounds an existing tmpfs. 0 leaves a bound as it is.
pub fn bound(path: &str, bytes: u64, inodes: u64) -> io::Result<()> {
    let context = fspick(rustix::fs::CWD, path, FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_SYMLINK_NOFOLLOW)?;
    if bytes > 0 {
        fsconfig_set_string(&context, "size", bytes.to_string())?;
    }
    if inodes > 0 {
        fsconfig_set_string(&context, "nr_inodes", inodes.to_string())?;
    }
    fsconfig_reconfigure(context.as_fd())
}

/// A new, detached tmpfs whose root has the given mode. 0 inodes: no bound.
pub fn make(mode: &str, inodes: u64, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "caisson")?;
    fsconfig_set_string(&context, "mode", mode)?;
    if inodes > 0 {
        fsconfig_set_string(&context, "nr_inodes", inodes.to_string())?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | attributes;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
