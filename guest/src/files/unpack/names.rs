//! Which names and link targets an archive may have.

use crate::rules::{PATH_MAX_BYTES, PATH_MAX_SEGMENT_BYTES};

/// The member's path without `.` and doubled slashes; empty for the directory itself.
pub fn clean(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    if path.is_empty() {
        return Err("a member has no name");
    }
    if path[0] == b'/' {
        return Err("a member's name is absolute");
    }
    if path.len() > PATH_MAX_BYTES {
        return Err("a member's name is too long");
    }
    if path.contains(&0) {
        return Err("a member's name has a NUL");
    }
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty() && *segment != b".") {
        if segment == b".." {
            return Err("a member's name has `..`");
        }
        if segment.len() > PATH_MAX_SEGMENT_BYTES {
            return Err("a member's name is too long");
        }
        segments.push(segment);
    }
    Ok(segments.join(&b'/'))
}

/// A symbolic link may lead anywhere inside the archive's own tree. It may climb only at its beginning, from the real
/// directories that hold it: a `..` behind a name could start from wherever another link leads.
pub fn check_target(member: &[u8], target: &[u8]) -> Result<(), &'static str> {
    if target.is_empty() || target.len() > PATH_MAX_BYTES || target.contains(&0) {
        return Err("a link's target is empty, too long or has a NUL");
    }
    if target[0] == b'/' {
        return Err("a link leads to an absolute path");
    }
    let mut height = member.iter().filter(|byte| **byte == b'/').count();
    let mut is_climbing = true;
    for segment in target.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty() && *segment != b".") {
        if segment != b".." {
            is_climbing = false;
        } else if !is_climbing || height == 0 {
            return Err("a link leads out of the archive");
        } else {
            height -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below() {
        assert_eq!(clean(b"./a//b/").unwrap(), b"a/b");
        assert_eq!(clean(b"./").unwrap(), b"");
        assert_eq!(clean(b"\xff/\n").unwrap(), b"\xff/\n");
        for bad in [b"".as_slice(), b"/a", b"../a", b"a/../../b", b"a/..", b"a\0b"] {
            assert!(clean(bad).is_err(), "{bad:?}");
        }
        assert!(clean(&[b'x'; 256]).is_err() && clean(&b"x/".repeat(2049)).is_err());
    }

    #[test]
    fn links_stay_inside_even_through_other_links() {
        for good in ["b", "../x", "../../x/y", "./../b", "b/c"] {
            assert!(check_target(b"p/q/link", good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["/etc/passwd", "../../../x", "b/../c", "b/..", "", "a\0b"] {
            assert!(check_target(b"p/q/link", bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(check_target(b"link", b"..").is_err());
    }
}
