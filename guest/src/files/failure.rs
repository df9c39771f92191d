//! Why a call failed, in the codes of spec/rules.json.

use std::fmt::Display;

use rustix::io::Errno;

use super::Closed;
use crate::proto::link::Failure;

/// Why a call stops before its end.
#[derive(Debug)]
pub enum Stop {
    /// Nobody is listening any more.
    Closed,
    Failed(Failure),
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub fn failure(code: &str, message: impl Into<String>) -> Failure {
    Failure { code: code.into(), message: message.into(), errno: 0 }
}

/// What the kernel refused, about a path that the caller named.
pub fn from_errno(path: impl Display, error: Errno) -> Failure {
    let unknown;
    let (code, words) = match error {
        // SRCH: of a process that has ended.
        Errno::NOENT | Errno::STALE | Errno::SRCH => ("PATH_NOT_FOUND", "there is nothing"),
        Errno::ACCESS | Errno::PERM => ("PATH_DENIED", "not permitted"),
        Errno::ROFS => ("PATH_DENIED", "on a read-only file system"),
        Errno::BUSY | Errno::TXTBSY => ("PATH_DENIED", "in use by the system"),
        Errno::LOOP => ("PATH_DENIED", "a link that may not be followed"),
        Errno::XDEV => ("PATH_DENIED", "on another file system"),
        Errno::NOTDIR => ("NOT_A_DIRECTORY", "not a directory"),
        Errno::ISDIR => ("NOT_A_FILE", "a directory"),
        Errno::NXIO | Errno::NODEV => ("NOT_A_FILE", "not a regular file"),
        Errno::EXIST => ("PATH_EXISTS", "already there"),
        Errno::NOTEMPTY => ("DIRECTORY_NOT_EMPTY", "not empty"),
        Errno::NAMETOOLONG | Errno::ILSEQ => ("INVALID_PATH", "a name that the file system refuses"),
        Errno::INVAL => ("INVALID_INPUT", "not possible with this path"),
        Errno::NOSPC | Errno::DQUOT => ("STORAGE_FULL", "no space left"),
        Errno::FBIG | Errno::OVERFLOW => ("TOO_LARGE", "larger than the file system or a limit allows"),
        Errno::AGAIN => ("UNAVAILABLE", "changing too fast to be resolved"),
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => ("UNAVAILABLE", "the guest is out of descriptors or memory"),
        _ => {
            unknown = format!("the file system failed: {error}");
            ("INTERNAL", unknown.as_str())
        }
    };
    Failure { code: code.into(), message: format!("{path}: {words}"), errno: error.raw_os_error().unsigned_abs() }
}

/// Names the path in an error of the kernel.
pub trait At<T> {
    fn at(self, path: impl Display) -> Result<T, Failure>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, path: impl Display) -> Result<T, Failure> {
        self.map_err(|error| from_errno(path, error))
    }
}
