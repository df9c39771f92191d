//! Leaving namespaces.

use rustix::{
    io::Errno,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Puts this process, which has one thread, into new namespaces. Never with FILES.
pub fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the only hazard is descriptors that another thread cannot see, and FILES is excluded.
    unsafe { unshare_unsafe(flags) }
}
