//! Leaving namespaces, and what the kernel offers.

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

/// The version of Landlock that the kernel speaks; 0 where it has none or it is switched off.
pub fn landlock_abi() -> u32 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no attributes and only returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}
