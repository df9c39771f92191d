//! The sandbox's private tmpfs mounts: their bounds, and the empty ones used as covers.

use std::{
    ffi::CString,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    io::{self, Errno},
    mount::{
        FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountFlags, fsconfig_create, fsconfig_reconfigure,
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

/// A new tmpfs at a path that nothing else can change meanwhile. By the older call, which gVisor has too. 0: no bound.
pub fn mount_at(path: &str, mode: u32, bytes: u64, inodes: u64) -> io::Result<()> {
    let mut options = format!("mode={mode:o}");
    if bytes > 0 {
        options.push_str(&format!(",size={bytes}"));
    }
    let bounded = if inodes > 0 { format!("{options},nr_inodes={inodes}") } else { options.clone() };
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mount = |options: &str| {
        rustix::mount::mount("caisson", path, "tmpfs", flags, Some(&*CString::new(options).map_err(|_| Errno::INVAL)?))
    };
    match mount(&bounded) {
        // gVisor knows no bound on the number of files.
        Err(Errno::INVAL) if bounded != options => mount(&options),
        other => other,
    }
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
