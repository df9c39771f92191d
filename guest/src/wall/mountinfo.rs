//! Reading /proc/self/mountinfo.

use std::{
    fs::File,
    io::{self, Read},
};

#[derive(Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// As `st_dev` of files in it.
    pub device: u64,
    /// The directory of the file system that is mounted.
    pub root: String,
    pub path: String,
    pub kind: String,
    pub read_only: bool,
    pub nosuid: bool,
    pub nodev: bool,
}

impl MountEntry {
    /// A tmpfs that was made for the sandbox, rather than part of one of the host's.
    pub fn is_private(&self) -> bool {
        self.kind == "tmpfs" && !self.read_only && (self.root == "/" || self.path == "/")
    }
}

pub fn read() -> io::Result<Vec<MountEntry>> {
    // The kernel does not say how long it is; room for all of it saves reading it by a few bytes at first.
    let mut text = Vec::with_capacity(32 * 1024);
    File::open("/proc/self/mountinfo")?.read_to_end(&mut text)?;
    String::from_utf8_lossy(&text)
        .lines()
        .map(|line| parse(line).ok_or_else(|| io::Error::other(format!("mountinfo has an unreadable line: {line}"))))
        .collect()
}

/// `36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/root rw,errors=continue`
fn parse(line: &str) -> Option<MountEntry> {
    let (mount, superblock) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(2);
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    let root = unescape(fields.next()?);
    let path = unescape(fields.next()?);
    let options = fields.next()?;
    let has = |name: &str| options.split(',').any(|option| option == name);
    let mut superblock = superblock.split(' ');
    let kind = superblock.next()?.to_owned();
    let superblock_read_only = superblock.nth(1).is_some_and(|all| all.split(',').any(|option| option == "ro"));
    Some(MountEntry {
        device,
        root,
        path,
        kind,
        read_only: superblock_read_only || has("ro"),
        nosuid: has("nosuid"),
        nodev: has("nodev"),
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'\\').then(|| field.get(at + 1..at + 4)).flatten();
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_with_optional_fields_and_escapes_is_read() {
        let entry =
            parse("36 35 98:1 /a\\040b /mnt\\134x ro,nosuid,noatime master:1 propagate_from:2 - ext4 /dev/root rw")
                .unwrap();
        assert_eq!((entry.root.as_str(), entry.path.as_str()), ("/a b", "/mnt\\x"));
        assert_eq!(entry.device, rustix::fs::makedev(98, 1));
        assert!(entry.read_only && entry.nosuid && !entry.nodev);
    }

    #[test]
    fn a_read_only_superblock_counts() {
        assert!(parse("1 0 0:5 / / rw - tmpfs none ro,size=4k").unwrap().read_only);
        assert!(!parse("1 0 0:5 / / rw - tmpfs none rw,size=4k").unwrap().read_only);
    }

    #[test]
    fn a_file_of_a_host_tmpfs_is_not_private() {
        assert!(parse("1 0 0:5 / /tmp rw - tmpfs none rw").unwrap().is_private());
        assert!(parse("1 0 0:5 /newroot / rw - tmpfs none rw").unwrap().is_private());
        assert!(!parse("1 0 0:5 /null /dev/null rw - tmpfs none rw").unwrap().is_private());
        assert!(!parse("1 0 0:5 / /usr ro - tmpfs none rw").unwrap().is_private());
    }

    #[test]
    fn a_torn_line_is_refused() {
        assert!(parse("1 0 0:5 / /").is_none());
        assert!(parse("1 0 x:5 / / rw - tmpfs none rw").is_none());
    }
}
