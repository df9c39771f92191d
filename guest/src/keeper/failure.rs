//! Why a request failed, in words of the table in spec/rules.json.

use rustix::io::Errno;

use crate::proto::keeper::{KeeperFailure, KeeperReply};

#[derive(Debug)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub errno: i32,
}

impl Failure {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), errno: 0 }
    }

    /// A system call failed: `doing` says at what.
    pub fn errno(code: &str, doing: impl AsRef<str>, errno: Errno) -> Self {
        Self {
            code: code.into(),
            message: format!("{}: {}", doing.as_ref(), std::io::Error::from(errno)),
            errno: errno.raw_os_error(),
        }
    }

    pub fn reply(self, id: u32) -> KeeperReply {
        let failure = KeeperFailure { code: self.code, message: self.message, errno: self.errno.unsigned_abs() };
        KeeperReply { id, failure: Some(failure), reply: None }
    }
}
