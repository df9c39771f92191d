//! What rustix lacks of the mount API.

use std::os::fd::{AsFd, AsRawFd};

use rustix::{io, mount::MountAttrFlags};

/// The kernel's `struct mount_attr`, first version.
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Adds attributes to the mount behind `mount` and to those below it, and cuts their propagation.
/// `mount` is a descriptor of the mount's root.
pub fn set_attributes(mount: impl AsFd, set: MountAttrFlags, clear: MountAttrFlags, recursive: bool) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: u64::from(set.bits()),
        attr_clr: u64::from(clear.bits()),
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, the structure outlives the call and its size is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    super::check(result).map(drop)
}
