//! Describing what is there.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat, readlinkat};

use crate::proto::link::{FileEntry, file_entry::Type};

pub const PERMISSIONS: u32 = 0o7777;

/// What a status says; `target` is filled for links by whoever can read them.
pub fn entry(path: &[u8], stat: &Stat) -> FileEntry {
    FileEntry {
        path: path.to_vec(),
        r#type: kind(stat).into(),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & PERMISSIONS,
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
        target: Vec::new(),
        etag: etag(stat),
    }
}

/// The same for a name in a directory, with a link's target.
pub fn entry_in(directory: impl AsFd, name: &[u8], path: &[u8], stat: &Stat) -> FileEntry {
    let mut entry = entry(path, stat);
    if entry.r#type() == Type::Symlink {
        // Gone or replaced since: then there is no target to tell.
        entry.target = readlinkat(directory, name, Vec::new()).map(|target| target.into_bytes()).unwrap_or_default();
    }
    entry
}

pub fn kind(stat: &Stat) -> Type {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Type::Regular,
        FileType::Directory => Type::Directory,
        FileType::Symlink => Type::Symlink,
        _ => Type::Special,
    }
}

/// Changes whenever the content does: a write moves mtime and ctime, and ctime cannot be set back.
pub fn etag(stat: &Stat) -> String {
    let modified = nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64);
    let changed = nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64);
    format!("{:x}-{:x}-{modified:x}-{changed:x}", stat.st_ino, stat.st_size)
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
