//! mount_setattr: the properties of a mount that nobody uses yet.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

use rustix::io::Errno;

use super::check;

/// What a handed-in mount is to be. Always private, without set-uid programs and devices.
pub struct Attributes<'a> {
    pub read_only: bool,
    /// A user namespace that says how owners on disk appear through the mount.
    pub id_map: Option<BorrowedFd<'a>>,
}

/// Lets a mount be written through.
pub fn make_writable(mount: BorrowedFd) -> Result<(), Errno> {
    apply(mount, &libc::mount_attr { attr_set: 0, attr_clr: libc::MOUNT_ATTR_RDONLY, propagation: 0, userns_fd: 0 })
}

pub fn set_attributes(mount: BorrowedFd, attributes: &Attributes) -> Result<(), Errno> {
    let mut set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    if attributes.read_only {
        set |= libc::MOUNT_ATTR_RDONLY;
    }
    if attributes.id_map.is_some() {
        set |= libc::MOUNT_ATTR_IDMAP;
    }
    let request = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: attributes.id_map.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    apply(mount, &request)
}

fn apply(mount: BorrowedFd, request: &libc::mount_attr) -> Result<(), Errno> {
    // SAFETY: the path is an empty C string, and the kernel reads exactly the size that is given with the struct.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            ptr::from_ref(request),
            size_of::<libc::mount_attr>(),
        )
    };
    check(result).map(drop)
}
