//! mount_setattr: the properties of a mount that is not attached anywhere yet.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::check;

/// What a handed-in mount is to be. Always private, without set-uid programs and devices.
pub struct Attributes<'a> {
    pub read_only: bool,
    /// A user namespace that says how owners on disk appear through the mount.
    pub id_map: Option<BorrowedFd<'a>>,
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
    // SAFETY: the path is an empty C string, and the kernel reads exactly the size that is given with the struct.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const request,
            size_of::<libc::mount_attr>(),
        )
    };
    check(result).map(drop)
}
