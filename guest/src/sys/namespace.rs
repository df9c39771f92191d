//! Entering a user namespace.

use rustix::{io, thread::UnshareFlags};

/// Moves the calling process, which must have one thread, into a new user namespace.
pub fn enter_user_namespace() -> io::Result<()> {
    // SAFETY: a new user namespace leaves the descriptor table and the file-system attributes
    // shared as they were, which is what makes other uses of this call unsafe.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
}
