//! Replacing a file at once: the content goes into a file beside it, which then takes its name. So a
//! reader sees the old or the new, never a part.
//!
//! A path that is a link is written where the link leads, inside the sandbox; the link stays. Other hard
//! links of a replaced file keep the old content.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Mutex,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, SeekFrom, fchmod, fstat, ftruncate, openat, renameat, renameat_with, seek,
        unlinkat,
    },
    io::Errno,
};

use super::{
    Talk,
    entry::{entry, etag, kind},
    failure::{At, Stop, failure},
    mkdir::make_parents,
    path::SandboxPath,
    read::check_regular,
    root::{Place, Root},
    temporary,
};
use crate::proto::link::{Failure, WriteCall};

/// Never more than these: no set-uid, no set-gid.
const PERMISSIONS: u32 = 0o777;
const DEFAULT_MODE: u32 = 0o644;

/// Between comparing an etag and renaming, no other call may do the same.
pub static COMMIT: Mutex<()> = Mutex::new(());

pub fn write(root: &Root, call: &WriteCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    if call.parents {
        make_parents(root, &path.split()?.0)?;
    }
    let place = root.place_behind_links(&path)?;
    check(&path, &place, &call.if_match)?;
    let mut draft = Draft::new(&place).at(&path)?;
    receive(&path, call.max_bytes, &draft.file, talk)?;
    draft.put_in_place(&path, &place, call)?;
    let stat = fstat(&draft.file).at(&path)?;
    talk.answer_entry(entry(call.path.as_bytes(), &stat))
}

/// Whether what is there may be replaced, and its mode.
fn check(path: &SandboxPath, place: &Place, if_match: &str) -> Result<Option<u32>, Failure> {
    let found = place.look().at(path)?;
    if let Some(stat) = &found {
        check_regular(path, kind(stat))?;
    }
    let matches = match (if_match, &found) {
        ("", _) | ("*", Some(_)) | ("-", None) => true,
        (wanted, Some(stat)) => wanted == etag(stat),
        (_, None) => false,
    };
    if !matches {
        let words = if found.is_some() { "has changed or exists" } else { "does not exist" };
        return Err(failure("ETAG_MISMATCH", format!("{path}: the file {words}")));
    }
    Ok(found.map(|stat| stat.st_mode & PERMISSIONS))
}

fn receive(path: &SandboxPath, max_bytes: u64, file: &OwnedFd, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let mut total = 0_u64;
    while let Some(piece) = talk.channel.receive()? {
        total += piece.len() as u64;
        if max_bytes > 0 && total > max_bytes {
            return Err(failure("TOO_LARGE", format!("{path}: more than {max_bytes} bytes")).into());
        }
        write_all(file, &piece).at(path)?;
    }
    Ok(())
}

pub fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Goes on behind a hole, which the file has also if nothing follows.
pub fn leave_hole(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    let bytes = i64::try_from(bytes).map_err(|_| Errno::FBIG)?;
    let end = seek(&file, SeekFrom::Current(bytes))?;
    ftruncate(file, end)
}

/// A file under a temporary name that is removed again unless it is put in place.
struct Draft<'a> {
    place: &'a Place,
    file: OwnedFd,
    name: Option<Vec<u8>>,
}

impl<'a> Draft<'a> {
    fn new(place: &'a Place) -> Result<Self, Errno> {
        let name = temporary::name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&place.directory, name.as_slice(), flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Self { place, file, name: Some(name) })
    }

    fn put_in_place(&mut self, path: &SandboxPath, place: &Place, call: &WriteCall) -> Result<(), Failure> {
        let _alone = COMMIT.lock();
        let replaced = check(path, place, &call.if_match)?;
        let mode = if call.mode != 0 { call.mode & PERMISSIONS } else { replaced.unwrap_or(DEFAULT_MODE) };
        fchmod(&self.file, Mode::from_raw_mode(mode)).at(path)?;
        let Some(name) = self.name.take() else { return Ok(()) };
        let directory = &place.directory;
        let renamed = if call.if_match == "-" {
            rename_to_free(directory, &name, directory, &place.name)
        } else {
            renameat(directory, name.as_slice(), directory, place.name.as_slice())
        };
        renamed.map_err(|error| {
            self.name = Some(name);
            match error {
                Errno::EXIST => failure("ETAG_MISMATCH", format!("{path}: the file has changed or exists")),
                error => super::failure::from_errno(path, error),
            }
        })
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(&self.place.directory, name.as_slice(), AtFlags::empty());
        }
    }
}

/// Renames only if nothing has the new name. Where the file system cannot promise that, looking first must do.
pub fn rename_to_free(from: &OwnedFd, name: &[u8], to: &OwnedFd, new: &[u8]) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return result,
    }
    match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(from, name, to, new),
        Err(error) => Err(error),
    }
}
