//! Attaching a seccomp filter.

use rustix::io;

/// One instruction of classic BPF, as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    pub jump_true: u8,
    pub jump_false: u8,
    pub value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

const SET_MODE_FILTER: u32 = 1;

/// Puts the calling process behind `filter` for good; needs no_new_privs. Async-signal-safe.
pub fn attach(filter: &[Instruction]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::Errno::INVAL)?;
    let program = Program { length, instructions: filter.as_ptr() };
    // SAFETY: the kernel copies `length` instructions from a slice that outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0u32, &raw const program) };
    super::check(result).map(drop)
}
