//! Where an archive's members wait until all of them are known to be good.

use std::{collections::HashMap, os::fd::OwnedFd};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat, mkdirat, openat,
        statat, symlinkat, utimensat,
    },
    io::Errno,
};

use super::{
    Refusal,
    names::{check_target, clean},
};
use crate::{
    files::{
        failure::{At, failure, from_errno},
        path::SandboxPath,
        remove::remove_tree,
        root::{DIRECTORY, LOOK, Root},
        tar::{Kind, Member, reader::Event},
        temporary,
        write::{leave_hole, write_all},
    },
    proto::link::{Failure, UnpackCall},
};

/// When the caller names no bound: the stage remembers every directory.
const DEFAULT_MAX_FILES: u64 = 1_000_000;
/// How errors of the kernel name what is being unpacked.
pub const ARCHIVE: &str = "the archive";

/// What a directory gets once everything is in place.
pub struct Directory {
    pub mode: u32,
    pub modified: Option<i64>,
    /// Made because something lies in it, not because the archive has it.
    is_implied: bool,
}

pub struct Stage<'a> {
    root: &'a Root,
    /// The nearest directory above the target that exists, and the stage's name in it.
    base: OwnedFd,
    name: Vec<u8>,
    pub directory: OwnedFd,
    pub directories: HashMap<Vec<u8>, Directory>,
    /// The file whose content comes now, and its member.
    current: Option<(OwnedFd, Member)>,
    /// The directory of the last member; the next one is mostly in the same.
    parent: Option<(Vec<u8>, OwnedFd)>,
    any_links: bool,
    max_bytes: u64,
    max_files: u64,
    pub files: u64,
    pub bytes: u64,
}

impl<'a> Stage<'a> {
    pub fn new(root: &'a Root, path: &SandboxPath, call: &UnpackCall) -> Result<Self, Failure> {
        let base = nearest(root, path)?;
        let name = temporary::name();
        mkdirat(&base, name.as_slice(), Mode::RWXU).at(path)?;
        let directory = root.open_below(&base, &name, DIRECTORY, false).at(path)?;
        Ok(Self {
            root,
            base,
            name,
            directory,
            directories: HashMap::new(),
            current: None,
            parent: None,
            any_links: call.any_links,
            max_bytes: if call.max_bytes == 0 { u64::MAX } else { call.max_bytes },
            max_files: if call.max_files == 0 { DEFAULT_MAX_FILES } else { call.max_files },
            files: 0,
            bytes: 0,
        })
    }

    pub fn take(&mut self, event: Event<'_>) -> Result<(), Refusal> {
        match event {
            Event::Member(member) => self.begin(member),
            Event::Content(bytes) => match &self.current {
                Some((file, _)) => Ok(write_all(file, bytes).at(ARCHIVE)?),
                None => Err("content belongs to no file".into()),
            },
            Event::Hole(bytes) => match &self.current {
                Some((file, _)) => Ok(leave_hole(file, bytes).at(ARCHIVE)?),
                None => Err("content belongs to no file".into()),
            },
            Event::Done => {
                let Some((file, member)) = self.current.take() else { return Ok(()) };
                fchmod(&file, Mode::from_raw_mode(member.mode & 0o777)).at(ARCHIVE)?;
                Ok(set_time(&file, member.modified).at(ARCHIVE)?)
            }
        }
    }

    fn begin(&mut self, member: Member) -> Result<(), Refusal> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(member.size);
        if self.files > self.max_files {
            return Err(failure("TOO_LARGE", format!("{ARCHIVE} has more than {} members", self.max_files)).into());
        }
        if self.bytes > self.max_bytes {
            return Err(failure("TOO_LARGE", format!("{ARCHIVE} unpacks to more than {} bytes", self.max_bytes)).into());
        }
        if member.mode & 0o6000 != 0 {
            return Err("a member is set-uid or set-gid".into());
        }
        let path = clean(&member.path)?;
        if path.is_empty() {
            // The archive's own root: it is there already.
            return if member.kind == Kind::Directory { Ok(()) } else { Err("a member has no name".into()) };
        }
        if member.kind == Kind::Directory {
            return self.make_directory(path, &member);
        }
        let (parent, name) = cut(&path);
        if member.kind == Kind::HardLink {
            return self.link(parent, name, &clean(&member.target)?);
        }
        let any_links = self.any_links;
        let directory = self.open_parent(parent)?;
        if member.kind == Kind::Symlink {
            if !any_links {
                check_target(&path, &member.target)?;
            }
            symlinkat(member.target.as_slice(), directory, name).map_err(occurs_twice)?;
            let times = times(member.modified);
            return Ok(utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW).at(ARCHIVE)?);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map_err(occurs_twice)?;
        self.current = Some((file, member));
        Ok(())
    }

    fn make_directory(&mut self, path: Vec<u8>, member: &Member) -> Result<(), Refusal> {
        let (parent, name) = cut(&path);
        let directory = self.open_parent(parent)?;
        match (mkdirat(directory, name, Mode::RWXU), self.directories.get(&path)) {
            (Ok(()), _) => {}
            (Err(Errno::EXIST), Some(known)) if known.is_implied => {}
            (Err(error), _) => return Err(occurs_twice(error)),
        }
        let mode = member.mode & 0o777;
        self.directories.insert(path, Directory { mode, modified: Some(member.modified), is_implied: false });
        Ok(())
    }

    /// A hard link is another name for a file that has come before.
    fn link(&mut self, parent: &[u8], name: &[u8], target: &[u8]) -> Result<(), Refusal> {
        let (target_parent, target_name) = cut(target);
        let missing = "a hard link leads to nothing before it";
        let source = self.root.open_below(&self.directory, above(target_parent), LOOK | OFlags::DIRECTORY, false);
        let source = source.map_err(|_| missing)?;
        let stat = statat(&source, target_name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| missing)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("a hard link leads to something that is no file".into());
        }
        let directory = self.open_parent(parent)?;
        linkat(source, target_name, directory, name, AtFlags::empty()).map_err(occurs_twice)
    }

    /// The directory that a member lies in, made if the archive has not mentioned it.
    fn open_parent(&mut self, path: &[u8]) -> Result<&OwnedFd, Refusal> {
        if self.parent.as_ref().is_none_or(|(known, _)| known != path) {
            let flags = LOOK | OFlags::DIRECTORY;
            let opened = match self.root.open_below(&self.directory, above(path), flags, false) {
                Err(Errno::NOENT) => {
                    self.imply(path)?;
                    self.root.open_below(&self.directory, above(path), flags, false)
                }
                result => result,
            };
            self.parent = Some((path.to_vec(), opened.map_err(no_directory)?));
        }
        match &self.parent {
            Some((_, directory)) => Ok(directory),
            None => Err("a member has no place".into()),
        }
    }

    fn imply(&mut self, path: &[u8]) -> Result<(), Refusal> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let path = &path[..end];
            let (parent, name) = cut(path);
            let directory = self.root.open_below(&self.directory, above(parent), LOOK | OFlags::DIRECTORY, false);
            match mkdirat(directory.map_err(no_directory)?, name, Mode::RWXU) {
                Ok(()) => {
                    let implied = Directory { mode: 0o755, modified: None, is_implied: true };
                    self.directories.insert(path.to_vec(), implied);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(from_errno(ARCHIVE, error).into()),
            }
        }
        Ok(())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let _ = remove_tree(self.root, &self.base, &self.name);
    }
}

/// The target itself or, if it is still to be made, the nearest directory above it.
fn nearest(root: &Root, path: &SandboxPath) -> Result<OwnedFd, Failure> {
    let mut path = path.clone();
    loop {
        match root.open_at(&path, LOOK | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => path = path.split()?.0,
            result => return result.at(&path),
        }
    }
}

/// A path's directory (empty for the top) and its last name.
pub fn cut(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// How a directory is opened that may be the top itself.
pub fn above(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

pub fn set_time(file: &OwnedFd, modified: i64) -> Result<(), Errno> {
    futimens(file, &times(modified))
}

fn times(modified: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified, tv_nsec: 0 },
    }
}

/// Nothing was there before, so a name that exists is the archive's own.
fn occurs_twice(error: Errno) -> Refusal {
    match error {
        Errno::EXIST => "a name occurs twice".into(),
        error => from_errno(ARCHIVE, error).into(),
    }
}

fn no_directory(error: Errno) -> Refusal {
    match error {
        Errno::NOTDIR | Errno::LOOP | Errno::XDEV => "a member lies below something that is no directory".into(),
        error => from_errno(ARCHIVE, error).into(),
    }
}
