//! What differs between machines, and numbers that the libc crate does not have on all of them.

/// Numbers from 424 on are the same on every machine.
pub const PIDFD_GETFD: i64 = 438;
pub const FCHMODAT2: i64 = 452;

/// AUDIT_ARCH_*, by which the kernel tells whose numbers a call uses.
#[cfg(target_arch = "x86_64")]
pub const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub const ARCH: u32 = 0xc000_00b7;

/// Calls of the x32 ABI carry this bit beside the same architecture.
#[cfg(target_arch = "x86_64")]
pub const FIRST_FOREIGN: Option<u32> = Some(0x4000_0000);
#[cfg(target_arch = "aarch64")]
pub const FIRST_FOREIGN: Option<u32> = None;
