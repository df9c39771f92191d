//! An archive, unpacked: a layer of an image, or a part of a snapshot. Names and links stay below the directory whatever
//! the archive says; nothing of it is followed, and owners are never taken.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT, XattrFlags, fchmod, fsetxattr,
        futimens, linkat, mkdirat, mknodat, openat, openat2, statat, symlinkat, syncfs, unlinkat, utimensat,
    },
    io::Errno,
};

use super::{
    Trouble,
    manner::{admit, is_strict, passes_over},
    reading::{count, read_all},
};
use crate::{
    files::{
        clean_member, leave_hole,
        tar::{Kind, Member, reader::Event},
    },
    proto::keeper::{ImageDone, Manner, UnpackLayer},
    rules::PATH_MAX_BYTES,
};

pub fn unpack(directory: &OwnedFd, archive: &mut impl Read, options: &UnpackLayer) -> Result<ImageDone, Trouble> {
    let mut layer = Layer {
        directory,
        options: *options,
        manner: options.manner(),
        done: ImageDone::default(),
        current: Current::Nobody,
        parent: None,
        directories: Vec::new(),
    };
    read_all(archive, &mut |event| layer.take(event))?;
    layer.finish()
}

struct Layer<'a> {
    directory: &'a OwnedFd,
    options: UnpackLayer,
    manner: Manner,
    done: ImageDone,
    /// The file whose content comes now, and its member.
    current: Current,
    /// The directory of the last member; the next one is mostly in the same.
    parent: Option<(Vec<u8>, OwnedFd)>,
    /// Their times are set at the end, and so are modes that would keep others out: what comes into them changes those.
    directories: Vec<(Vec<u8>, Member)>,
}

/// Where content goes now.
enum Current {
    Nobody,
    File(File, Member),
    /// A member that is passed over.
    Nowhere,
}

impl Layer<'_> {
    fn take(&mut self, event: Event<'_>) -> Result<(), Trouble> {
        match event {
            Event::Member(member) => self.begin(member),
            Event::Content(bytes) => match &mut self.current {
                Current::File(file, _) => Ok(file.write_all(bytes)?),
                Current::Nowhere => Ok(()),
                Current::Nobody => Err("content belongs to no file".into()),
            },
            Event::Hole(bytes) => match &self.current {
                Current::File(file, _) => Ok(leave_hole(file, bytes)?),
                Current::Nowhere => Ok(()),
                Current::Nobody => Err("content belongs to no file".into()),
            },
            Event::Done => {
                let Current::File(file, member) = std::mem::replace(&mut self.current, Current::Nobody) else {
                    return Ok(());
                };
                fchmod(&file, self.file_mode(&member))?;
                Ok(futimens(&file, &times(&member))?)
            }
        }
    }

    fn begin(&mut self, member: Member) -> Result<(), Trouble> {
        count(&mut self.done, &member, self.options.max_files, self.options.max_bytes)?;
        admit(self.manner, &member)?;
        let path = clean_member(&member.path)?;
        if path.is_empty() {
            return if member.kind == Kind::Directory { Ok(()) } else { Err("a member has no name".into()) };
        }
        if passes_over(self.manner, &path, member.kind) {
            if member.kind == Kind::File {
                self.current = Current::Nowhere;
            }
            return Ok(());
        }
        let (parent, name) = cut(&path);
        match member.kind {
            Kind::Special if self.manner == Manner::Overlay => self.make_special(parent, name, &member),
            Kind::Special => {
                self.done.left_out += 1;
                Ok(())
            }
            Kind::Directory => {
                self.make_directory(parent, name, &member)?;
                self.directories.push((path, member));
                Ok(())
            }
            Kind::HardLink => self.link(parent, name, &clean_member(&member.target)?),
            Kind::Symlink => self.symlink(parent, name, &member),
            Kind::File => {
                let directory = self.make_room(parent, name)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map_err(occurs_twice)?;
                self.current = Current::File(file.into(), member);
                Ok(())
            }
        }
    }

    fn make_directory(&mut self, parent: &[u8], name: &[u8], member: &Member) -> Result<(), Trouble> {
        let is_strict = is_strict(self.manner);
        let directory = self.open_parent(parent)?;
        match mkdirat(directory, name, Mode::RWXU) {
            Ok(()) => {}
            Err(error) if is_strict => return Err(occurs_twice(error)),
            Err(Errno::EXIST) if is_directory(directory, name)? => {}
            Err(Errno::EXIST) => return Err("a name is both a directory and something else".into()),
            Err(error) => return Err(error.into()),
        }
        let made = below(directory, name)?;
        if member.marks.is_opaque && self.manner == Manner::Overlay {
            fsetxattr(&made, "user.overlay.opaque", b"y", XattrFlags::CREATE)?;
        }
        // The owner can always enter and read: whoever looks after the store is nobody but the owner.
        Ok(fchmod(made, Mode::from_raw_mode(member.mode & 0o777 | 0o700))?)
    }

    fn symlink(&mut self, parent: &[u8], name: &[u8], member: &Member) -> Result<(), Trouble> {
        // It may say anything: it is followed in sandboxes only, from their own root.
        if member.target.is_empty() || member.target.len() > PATH_MAX_BYTES || member.target.contains(&0) {
            return Err("a link's target is empty, too long or has a NUL".into());
        }
        let directory = self.make_room(parent, name)?;
        symlinkat(member.target.as_slice(), directory, name).map_err(occurs_twice)?;
        Ok(utimensat(directory, name, &times(member), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// What an overlay marks removed names by, which anybody may make; or a FIFO.
    fn make_special(&mut self, parent: &[u8], name: &[u8], member: &Member) -> Result<(), Trouble> {
        let kind = if member.marks.is_whiteout { FileType::CharacterDevice } else { FileType::Fifo };
        let directory = self.make_room(parent, name)?;
        mknodat(directory, name, kind, Mode::from_raw_mode(member.mode & 0o777), 0).map_err(occurs_twice)?;
        Ok(utimensat(directory, name, &times(member), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// A hard link is another name for a file that has come before in this layer.
    fn link(&mut self, parent: &[u8], name: &[u8], target: &[u8]) -> Result<(), Trouble> {
        let missing = "a hard link leads to nothing before it";
        let (target_parent, target_name) = cut(target);
        let source = below(self.directory, target_parent).map_err(|_| missing)?;
        let stat = statat(&source, target_name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| missing)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err("a hard link leads to a directory".into());
        }
        let is_strict = is_strict(self.manner);
        let directory = self.open_parent(parent)?;
        if is_strict {
            return linkat(source, target_name, directory, name, AtFlags::empty()).map_err(occurs_twice);
        }
        if statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino))
        {
            return Ok(());
        }
        clear(directory, name)?;
        Ok(linkat(source, target_name, directory, name, AtFlags::empty())?)
    }

    /// The directory that a member lies in, where its name is free.
    fn make_room(&mut self, parent: &[u8], name: &[u8]) -> Result<&OwnedFd, Trouble> {
        let is_strict = is_strict(self.manner);
        let directory = self.open_parent(parent)?;
        if !is_strict {
            clear(directory, name)?;
        }
        Ok(directory)
    }

    fn file_mode(&self, member: &Member) -> Mode {
        Mode::from_raw_mode(match self.manner {
            Manner::Unspecified => member.mode & 0o777 | 0o400,
            Manner::Files => 0o600,
            Manner::Tree | Manner::Overlay => member.mode & 0o1777,
        })
    }

    /// The directory that a member lies in, made if the archive has not mentioned it.
    fn open_parent(&mut self, path: &[u8]) -> Result<&OwnedFd, Trouble> {
        if self.parent.as_ref().is_none_or(|(known, _)| known != path) {
            let opened = match below(self.directory, path) {
                Err(Errno::NOENT) if !is_strict(self.manner) => self.imply(path)?,
                result => result.map_err(no_directory)?,
            };
            self.parent = Some((path.to_vec(), opened));
        }
        match &self.parent {
            Some((_, directory)) => Ok(directory),
            None => Err("a member has no place".into()),
        }
    }

    fn imply(&self, path: &[u8]) -> Result<OwnedFd, Trouble> {
        let mut at = below(self.directory, b"")?;
        for name in path.split(|byte| *byte == b'/') {
            match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = below(&at, name).map_err(no_directory)?;
        }
        Ok(at)
    }

    fn finish(self) -> Result<ImageDone, Trouble> {
        // What lies in a directory comes before it: afterwards it may be closed to its owner.
        let mut directories = self.directories;
        directories.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        for (path, member) in &directories {
            match below(self.directory, path) {
                Ok(directory) => {
                    futimens(&directory, &times(member))?;
                    if self.manner == Manner::Overlay {
                        fchmod(&directory, Mode::from_raw_mode(member.mode & 0o1777))?;
                    }
                }
                // A later member took its place.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        syncfs(self.directory)?;
        Ok(self.done)
    }
}

/// Makes room for a member: of two with the same name the later one counts.
fn clear(directory: &OwnedFd, name: &[u8]) -> Result<(), Trouble> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => Err("a name is both a directory and something else".into()),
        Err(error) => Err(error.into()),
    }
}

/// Nothing was there before, so a name that exists is the archive's own.
fn occurs_twice(error: Errno) -> Trouble {
    match error {
        Errno::EXIST => "a name occurs twice".into(),
        error => error.into(),
    }
}

fn is_directory(directory: &OwnedFd, name: &[u8]) -> Result<bool, Errno> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn below(directory: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b".".as_slice() } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    openat2(directory, path, flags, Mode::empty(), how)
}

pub fn cut(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

fn times(member: &Member) -> Timestamps {
    times_of(member.modified, member.marks.nanoseconds)
}

pub fn times_of(modified: i64, nanoseconds: u32) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified, tv_nsec: nanoseconds.min(999_999_999).into() },
    }
}

fn no_directory(error: Errno) -> Trouble {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV => {
            "a member lies below something that is no directory".into()
        }
        error => error.into(),
    }
}
