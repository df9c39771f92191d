//! Failures as the link carries them; the codes are those of spec/rules.json.

use rustix::io::Errno;

use crate::proto::link::Failure;

pub fn failure(code: &str, message: impl Into<String>) -> Failure {
    Failure { code: code.into(), message: message.into(), errno: 0 }
}

/// A failure with the system's reason behind it.
pub fn because(code: &str, message: impl Into<String>, errno: Errno) -> Failure {
    let reason = std::io::Error::from(errno).kind();
    let message = format!("{}: {reason} (errno {})", message.into(), errno.raw_os_error());
    Failure { code: code.into(), message, errno: errno.raw_os_error() as u32 }
}
