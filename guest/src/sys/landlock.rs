//! The three Landlock calls.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// `struct landlock_ruleset_attr`; later members are only passed to kernels that know them.
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
}

/// `struct landlock_path_beneath_attr`, which the kernel declares packed.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// The ABI that the running kernel offers; 0 when Landlock is absent or switched off.
pub fn abi() -> u32 {
    // SAFETY: a null attribute of size 0 is how the version is asked for.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttr>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(result).unwrap_or(0)
}

pub fn create_ruleset(handled_access_fs: u64) -> io::Result<OwnedFd> {
    let attr = RulesetAttr { handled_access_fs };
    // SAFETY: the structure outlives the call and its size is passed.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size_of::<RulesetAttr>(), 0u32) };
    let descriptor = super::check(result)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

pub fn allow_beneath(ruleset: impl AsFd, path: impl AsFd, allowed_access: u64) -> io::Result<()> {
    let attr = PathBeneathAttr { allowed_access, parent_fd: path.as_fd().as_raw_fd() };
    // SAFETY: the structure is the one that this kind of rule takes and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_fd().as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const attr,
            0u32,
        )
    };
    super::check(result).map(drop)
}

pub fn restrict_self(ruleset: impl AsFd, flags: u32) -> io::Result<()> {
    // SAFETY: takes a descriptor and flags, no memory.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_fd().as_raw_fd(), flags) };
    super::check(result).map(drop)
}
