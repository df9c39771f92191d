//! Closing the wall: the order is the one that holds (docs/wall.md), each step with its own exit code.

use std::os::fd::OwnedFd;

use crate::proto::link;

/// A step of sealing that failed; the process must exit with `step` (spec/link.md).
#[derive(Debug)]
pub struct SealError {
    pub step: u8,
    pub message: String,
}

/// Makes this process, PID 1 of a sandbox, and everything it will ever start, live behind the wall.
/// Must be called while there is a single thread. `keep` are descriptors that stay open.
pub fn seal(seal: &link::Seal, mounts: Vec<OwnedFd>, keep: &[i32]) -> Result<Vec<link::Hold>, SealError> {
    let _ = (seal, mounts, keep);
    Err(SealError { step: 70, message: "not sealed".into() })
}

/// What a command gets beyond PID 1's wall, called in the child between fork and exec.
/// Async-signal-safe: allocates nothing.
pub fn confine_command() -> Result<(), i32> {
    Ok(())
}
