//! The root of an image, put together from its layers. Files are hard links into the layers, so that images that share a
//! layer share its files; directories are made anew.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, fchmod, futimens, linkat, mkdirat, readlinkat, symlinkat, syncfs, unlinkat, utimensat,
    },
    io::Errno,
};

use super::{Trouble, layer::times_of};
use crate::{
    proto::keeper::ImageDone,
    workspace::{beneath, copy_file},
};

/// A name with this prefix says that the name behind it is gone.
const WHITEOUT: &[u8] = b".wh.";
/// Says that the directory has nothing of the layers below.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// As deep as a path can be.
const MAX_DEPTH: usize = 2048;

pub fn assemble(root: &OwnedFd, layers: &[OwnedFd]) -> Result<ImageDone, Trouble> {
    let mut done = ImageDone::default();
    for layer in layers {
        merge(layer, root, 0, &mut done)?;
    }
    fchmod(root, Mode::from_raw_mode(0o755))?;
    syncfs(root)?;
    Ok(done)
}

fn merge(layer: &OwnedFd, root: &OwnedFd, depth: usize, done: &mut ImageDone) -> Result<(), Trouble> {
    if depth > MAX_DEPTH {
        return Err("a directory is too deep".into());
    }
    let (marks, names): (Vec<OsString>, Vec<OsString>) =
        beneath::names(layer)?.into_iter().partition(|name| name.as_bytes().starts_with(WHITEOUT));
    for mark in &marks {
        let mark = mark.as_bytes();
        if mark == OPAQUE {
            empty(root)?;
        } else if !mark.starts_with(b".wh..wh.") && mark.len() > WHITEOUT.len() {
            remove(root, OsStr::from_bytes(&mark[WHITEOUT.len()..]))?;
        }
    }
    for name in &names {
        entry(layer, root, name, depth, done)?;
    }
    Ok(())
}

fn entry(layer: &OwnedFd, root: &OwnedFd, name: &OsStr, depth: usize, done: &mut ImageDone) -> Result<(), Trouble> {
    let Some(stat) = beneath::stat(layer, name)? else { return Ok(()) };
    let there = beneath::stat(root, name)?.map(|stat| FileType::from_raw_mode(stat.st_mode));
    let kind = FileType::from_raw_mode(stat.st_mode);
    if there.is_some_and(|there| kind != FileType::Directory || there != FileType::Directory) {
        remove(root, name)?;
    }
    done.files += 1;
    match kind {
        FileType::Directory => {
            match mkdirat(root, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let inner = beneath::open_directory(root, name.as_bytes())?;
            merge(&beneath::open_directory(layer, name.as_bytes())?, &inner, depth + 1, done)?;
            fchmod(&inner, Mode::from_raw_mode(stat.st_mode & 0o777 | 0o700))?;
            futimens(&inner, &times_of(stat.st_mtime, 0))?;
        }
        FileType::RegularFile => {
            done.bytes += stat.st_size as u64;
            match linkat(layer, name, root, name, AtFlags::empty()) {
                Ok(()) => {}
                // The file has as many names as the file system allows.
                Err(Errno::MLINK) => copy_file((layer, name), (root, name))?,
                Err(error) => return Err(error.into()),
            }
        }
        FileType::Symlink => {
            symlinkat(readlinkat(layer, name, Vec::new())?, root, name)?;
            utimensat(root, name, &times_of(stat.st_mtime, 0), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        _ => return Err("a layer of the store holds what no layer can".into()),
    }
    Ok(())
}

fn empty(directory: &OwnedFd) -> Result<(), Trouble> {
    for name in beneath::names(directory)? {
        remove(directory, &name)?;
    }
    Ok(())
}

fn remove(directory: &OwnedFd, name: &OsStr) -> Result<(), Trouble> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {
            empty(&beneath::open_directory(directory, name.as_bytes())?)?;
            Ok(unlinkat(directory, name, AtFlags::REMOVEDIR)?)
        }
        Err(error) => Err(error.into()),
    }
}
