//! mount_setattr on mounts that are attached.

use std::os::fd::{AsFd, AsRawFd};

use rustix::{io, mount::MountAttrFlags};

/// Adds attributes to the mount whose root is open here and cuts its propagation; with `recursive` also
/// for everything mounted below it.
pub fn add_attributes(mount: impl AsFd, set: MountAttrFlags, recursive: bool) -> io::Result<()> {
    let attr =
        libc::mount_attr { attr_set: u64::from(set.bits()), attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, the structure outlives the call and its size is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    super::check(result).map(drop)
}
