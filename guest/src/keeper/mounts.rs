//! What is mounted below a directory.

use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// The first mount strictly below `directory`, which must be a canonical path.
pub fn nested_mount(directory: &Path) -> std::io::Result<Option<PathBuf>> {
    // Read in few large pieces: the kernel makes the text anew for each.
    let mut mountinfo = Vec::with_capacity(1 << 16);
    File::open("/proc/self/mountinfo")?.read_to_end(&mut mountinfo)?;
    Ok(find_nested(&mountinfo, directory))
}

fn find_nested(mountinfo: &[u8], directory: &Path) -> Option<PathBuf> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .find(|point| point != directory && point.starts_with(directory))
}

/// The kernel writes blanks, newlines and backslashes as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &[u8] = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
        28 27 0:25 / /home/ann/project rw - tmpfs none rw\n\
        29 28 0:26 / /home/ann/project/my\\040cache rw - tmpfs none rw\n\
        30 27 0:27 / /home/ann/project-two/x rw - tmpfs none rw\n";

    #[test]
    fn a_mount_below_is_found_and_its_name_is_readable() {
        let found = find_nested(MOUNTINFO, Path::new("/home/ann/project"));
        assert_eq!(found, Some(PathBuf::from("/home/ann/project/my cache")));
    }

    #[test]
    fn a_mount_at_the_directory_itself_or_beside_it_is_not_below_it() {
        assert_eq!(find_nested(MOUNTINFO, Path::new("/home/ann/project/my cache")), None);
        assert_eq!(find_nested(MOUNTINFO, Path::new("/home/ann/pro")), None);
    }
}
