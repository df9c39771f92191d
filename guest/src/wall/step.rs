//! The steps of sealing and the errors that name them.

use std::fmt::Display;

/// A step of sealing that failed; the process must exit with `step` (spec/link.md).
#[derive(Debug)]
pub struct SealError {
    pub step: u8,
    pub message: String,
}

/// Each step's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Usage = 70,
    Mounts = 71,
    Network = 72,
    Descriptors = 73,
    UserNamespaces = 74,
    Identity = 75,
    Capabilities = 76,
    Privileges = 77,
    Landlock = 78,
    Seccomp = 79,
    Check = 80,
}

impl Step {
    pub fn error(self, message: impl Into<String>) -> SealError {
        SealError { step: self as u8, message: message.into() }
    }
}

/// Turns a failed call into the error of the step it belongs to.
pub trait During<T> {
    fn during(self, step: Step, what: impl Display) -> Result<T, SealError>;
}

impl<T, E: Display> During<T> for Result<T, E> {
    fn during(self, step: Step, what: impl Display) -> Result<T, SealError> {
        self.map_err(|error| step.error(format!("{what}: {error}")))
    }
}
