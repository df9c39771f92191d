//! Closing and borrowing descriptors by number.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io;

/// Closes every descriptor from `first` to `last`.
pub fn close_range(first: u32, last: u32) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // gVisor refuses numbers that no descriptor can have.
    let last = last.min(i32::MAX as u32);
    // SAFETY: takes numbers only. Callers close what nothing in this process owns any more.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
    super::check(result).map(drop)
}

/// Borrows a descriptor that is known to be open for as long as the borrow is used.
pub fn borrow(descriptor: RawFd) -> Option<BorrowedFd<'static>> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: not -1; a number that is not open makes calls on it fail with EBADF, nothing worse.
    Some(unsafe { BorrowedFd::borrow_raw(descriptor) })
}
