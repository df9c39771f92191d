//! Git's index, as far as it says what is staged. Git writes the file anew to remember what it has looked at, and then nothing has
//! changed that anybody would apply: two indexes are the same when they stage the same.

use std::{ffi::OsStr, fs::File, io::Read, os::fd::AsFd};

use super::{JobError, beneath};
use crate::rules::PATH_MAX_BYTES;

/// The index of the project's own repository.
pub const PATH: &[u8] = b".git/index";
/// A larger one is compared byte by byte.
const MAX_BYTES: u64 = 64 << 20;
/// SHA-1; other repositories' indexes are compared byte by byte.
const HASH: usize = 20;
/// What git can make again from the entries and the files.
const CACHES: [&[u8; 4]; 5] = [b"TREE", b"UNTR", b"FSMN", b"EOIE", b"IEOT"];

/// Do both stage the same? False where that cannot be told.
pub fn stage_the_same(a: (impl AsFd, &OsStr), b: (impl AsFd, &OsStr)) -> Result<bool, JobError> {
    let (a, b) = (read(a.0, a.1)?, read(b.0, b.1)?);
    Ok(same(&a, &b).unwrap_or(false))
}

fn read(dir: impl AsFd, name: &OsStr) -> Result<Vec<u8>, JobError> {
    let mut bytes = Vec::new();
    File::from(beneath::open_file(dir, name)?).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Both at once, entry by entry, so that nothing grows that a sandbox has written.
fn same(a: &[u8], b: &[u8]) -> Option<bool> {
    let (mut a, mut b) = (Index::open(a)?, Index::open(b)?);
    if a.entries != b.entries {
        return Some(false);
    }
    for _ in 0..a.entries {
        if a.entry()? != b.entry()? || a.path != b.path {
            return Some(false);
        }
    }
    loop {
        match (a.extension()?, b.extension()?) {
            (None, None) => return Some(true),
            (a, b) if a != b => return Some(false),
            _ => {}
        }
    }
}

/// An index that is being read. Whatever gives `None` is no index of a form that is known.
struct Index<'a> {
    rest: &'a [u8],
    version: u32,
    entries: u32,
    /// Of the last entry; the next one's may be told as a difference from it.
    path: Vec<u8>,
}

#[derive(PartialEq)]
struct Entry<'a> {
    mode: &'a [u8],
    hash: &'a [u8],
    /// Assumed unchanged, the stage of a merge; skipped, to be added.
    flags: (u16, &'a [u8]),
}

impl<'a> Index<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, _checksum) = bytes.split_at_checked(bytes.len().checked_sub(HASH)?)?;
        let head = take(&mut rest, 12)?;
        let (version, entries) = (number(&head[4..8]), number(&head[8..12]));
        let is_known = bytes.len() as u64 <= MAX_BYTES && &head[..4] == b"DIRC" && (2..=4).contains(&version);
        is_known.then_some(Self { rest, version, entries, path: Vec::new() })
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        let rest = &mut self.rest;
        let start = rest.len();
        let fixed = take(rest, 42 + HASH)?;
        // Times, device, inode, owner and size are what git remembers of a file that it has looked at.
        let (mode, hash) = (&fixed[24..28], &fixed[40..40 + HASH]);
        let flags = u16::from_be_bytes([fixed[40 + HASH], fixed[41 + HASH]]);
        let extended = take(rest, if flags & 0x4000 != 0 { 2 } else { 0 })?;
        let kept = if self.version == 4 { self.path.len().checked_sub(varint(rest)?)? } else { 0 };
        self.path.truncate(kept);
        let end = rest.iter().position(|byte| *byte == 0)?;
        if kept + end > PATH_MAX_BYTES {
            return None;
        }
        self.path.extend_from_slice(take(rest, end)?);
        let written = start - rest.len();
        // A NUL ends the name; before version 4 more of them fill up to a multiple of eight.
        take(rest, if self.version == 4 { 1 } else { 8 - written % 8 })?;
        Some(Entry { mode, hash, flags: (flags & 0xf000, extended) })
    }

    /// The next extension that says something of its own.
    fn extension(&mut self) -> Option<Option<&'a [u8]>> {
        while !self.rest.is_empty() {
            let length = 8 + number(self.rest.get(4..8)?) as usize;
            let whole = take(&mut self.rest, length)?;
            if !CACHES.iter().any(|cache| whole.starts_with(*cache)) {
                return Some(Some(whole));
            }
        }
        Some(None)
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

/// As git writes offsets in packs.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = take(rest, 1)?[0];
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use std::{env::temp_dir, fs, path::PathBuf, process};

    use super::*;

    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str, version: &str) -> Self {
            let dir = temp_dir().join(format!("caisson-index-{}-{name}-{version}", process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(dir.join("d/deep")).unwrap();
            let repository = Self(dir);
            for file in ["a", "d/b", "d/deep/c", "d/deep/name-of-some-length"] {
                fs::write(repository.0.join(file), file).unwrap();
            }
            repository.git(&["init", "--quiet"]);
            repository.git(&["-c", &format!("index.version={version}"), "add", "."]);
            repository
        }

        fn git(&self, args: &[&str]) {
            let mut git = process::Command::new("git");
            git.current_dir(&self.0).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
            assert!(git.args(args).output().unwrap().status.success(), "git {args:?}");
        }

        fn index(&self) -> Vec<u8> {
            fs::read(self.0.join(".git/index")).unwrap()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_git_remembers_of_files_is_no_difference() {
        for version in ["2", "4"] {
            let repository = Repository::new("same", version);
            let before = repository.index();
            fs::write(repository.0.join("a"), "a").unwrap();
            repository.git(&["-c", "core.untrackedCache=true", "status", "--short"]);
            let after = repository.index();
            assert!(before != after && same(&before, &after) == Some(true), "{version}");
        }
    }

    #[test]
    fn what_is_staged_is_a_difference() {
        let orders: [&[&str]; 5] = [
            &["rm", "--cached", "--quiet", "a"],
            &["update-index", "--chmod=+x", "d/b"],
            &["update-index", "--assume-unchanged", "a"],
            &["update-index", "--skip-worktree", "a"],
            &["mv", "a", "z"],
        ];
        for order in orders {
            for version in ["2", "4"] {
                let repository = Repository::new("differs", version);
                let before = repository.index();
                repository.git(order);
                let after = repository.index();
                assert_eq!(same(&before, &after), Some(false), "{order:?} {version}");
            }
        }
        let repository = Repository::new("content", "2");
        let before = repository.index();
        fs::write(repository.0.join("a"), "other").unwrap();
        repository.git(&["add", "a"]);
        assert_eq!(same(&before, &repository.index()), Some(false));
    }

    #[test]
    fn anything_may_stand_in_an_index() {
        for version in ["2", "4"] {
            let good = Repository::new("hostile", version).index();
            for length in 0..good.len() {
                assert_ne!(same(&good, &good[..length]), Some(true));
            }
            for at in 0..good.len() {
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut bad = good.clone();
                    bad[at] = byte;
                    let _ = same(&bad, &bad);
                }
            }
        }
        assert!(same(b"", b"").is_none() && same(&[0; 64], &[0; 64]).is_none());
    }
}
