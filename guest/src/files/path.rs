//! The rules for paths, checked again behind the daemon's own check.

use super::failure::failure;
use crate::{
    proto::link::Failure,
    rules::{PATH_MAX_BYTES, PATH_MAX_SEGMENT_BYTES},
};

/// An absolute path in the sandbox, as its segments; `..` is kept, because only the kernel knows where it leads.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxPath {
    segments: Vec<String>,
}

impl SandboxPath {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if !text.starts_with('/') {
            return Err(failure("INVALID_PATH", "a path in the guest is absolute"));
        }
        if text.len() > PATH_MAX_BYTES {
            return Err(failure("INVALID_PATH", format!("the path is longer than {PATH_MAX_BYTES} bytes")));
        }
        if text.chars().any(char::is_control) {
            return Err(failure("INVALID_PATH", "the path has control characters"));
        }
        let mut segments = Vec::new();
        let mut depth = 0_i32;
        for segment in text.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
            if segment.len() > PATH_MAX_SEGMENT_BYTES {
                return Err(failure("INVALID_PATH", format!("a name is longer than {PATH_MAX_SEGMENT_BYTES} bytes")));
            }
            depth += if segment == ".." { -1 } else { 1 };
            if depth < 0 {
                return Err(failure("PATH_LEAVES_ROOT", "the path leads above the sandbox's root"));
            }
            segments.push(segment.to_owned());
        }
        Ok(Self { segments })
    }

    /// Relative to the root; `.` for the root itself.
    pub fn relative(&self) -> String {
        if self.segments.is_empty() { ".".into() } else { self.segments.join("/") }
    }

    /// Everything before the last name, and that name. The root and what ends in `..` have none.
    pub fn split(&self) -> Result<(Self, &str), Failure> {
        match self.segments.split_last() {
            Some((name, parents)) if name != ".." => Ok((Self { segments: parents.to_vec() }, name)),
            Some(_) => Err(failure("INVALID_PATH", "the path ends in `..`")),
            None => Err(failure("PATH_DENIED", "the sandbox's root stays as it is")),
        }
    }

    /// All ways down to this path, shortest first, without the root.
    pub fn prefixes(&self) -> impl Iterator<Item = Self> + '_ {
        (1..=self.segments.len()).map(|length| Self { segments: self.segments[..length].to_vec() })
    }
}

impl std::fmt::Display for SandboxPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "/{}", self.segments.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        SandboxPath::parse(text).map(|path| path.to_string()).unwrap_or_else(|failure| failure.code)
    }

    #[test]
    fn paths_are_absolute_short_and_stay_inside() {
        assert_eq!(code("/a//./b/"), "/a/b");
        assert_eq!(code("/a/../b"), "/a/../b");
        assert_eq!(code("/"), "/");
        for bad in ["", "a", "./a", "/a\0b", "/a\nb", "/\u{85}"] {
            assert_eq!(code(bad), "INVALID_PATH", "{bad:?}");
        }
        assert_eq!(code(&format!("/{}", "x".repeat(256))), "INVALID_PATH");
        assert_eq!(code(&"/x".repeat(2049)), "INVALID_PATH");
        for bad in ["/..", "/../etc", "/a/../..", "/a/../../b"] {
            assert_eq!(code(bad), "PATH_LEAVES_ROOT", "{bad:?}");
        }
    }

    #[test]
    fn the_last_name_is_one_that_can_be_made_or_removed() {
        let split = |text: &str| SandboxPath::parse(text).unwrap().split().map(|(_, name)| name.to_owned());
        assert_eq!(split("/a/b").unwrap(), "b");
        assert_eq!(split("/").unwrap_err().code, "PATH_DENIED");
        assert_eq!(split("/a/b/..").unwrap_err().code, "INVALID_PATH");
    }
}
