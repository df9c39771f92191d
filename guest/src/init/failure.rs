//! Failures as the link carries them; the codes are those of spec/rules.json.

use rustix::io::Errno;

use crate::proto::link::Failure;

/// Longer texts are cut: they may quote what somebody else wrote.
const MAX_MESSAGE_BYTES: usize = 400;

pub fn failure(code: &str, message: impl Into<String>) -> Failure {
    let mut message = message.into();
    let mut end = message.len().min(MAX_MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    Failure { code: code.into(), message, errno: 0 }
}

/// A failure with the system's reason behind it.
pub fn because(code: &str, message: impl Into<String>, errno: Errno) -> Failure {
    let reason = std::io::Error::from(errno).kind();
    let mut failure = failure(code, message);
    failure.message += &format!(": {reason} (errno {})", errno.raw_os_error());
    failure.errno = errno.raw_os_error() as u32;
    failure
}
