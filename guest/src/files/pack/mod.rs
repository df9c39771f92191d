//! A file or a tree as a tar stream. Names in it are relative to the packed directory, in order; owners are left out;
//! sockets, FIFOs, devices and /proc are not packed. The same tree gives the same bytes.

mod selection;

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Stat, fstat},
    io::{Errno, pread},
};

use super::{
    Talk,
    directory::{Entry, Found, Tree},
    entry::{entry_in, kind},
    failure::{At, Stop, failure, from_errno},
    path::SandboxPath,
    read::PIECE_BYTES,
    root::{DIRECTORY, LOOK, READ, Root, reopen},
    tar::{Kind, Marks, Member, writer},
};
use crate::proto::link::{FileEntry, FileReply, PackCall, file_entry::Type};

pub fn pack(root: &Root, call: &PackCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    let stat = fstat(root.open_at(&path, LOOK).at(&path)?).at(&path)?;
    let mut out = Out { talk, buffer: Vec::with_capacity(PIECE_BYTES) };
    match kind(&stat) {
        Type::Directory => {
            let directory = root.open_at(&path, DIRECTORY).at(&path)?;
            out.talk.answer(FileReply::default())?;
            if call.only.is_empty() {
                pack_tree(&path, Tree::new(directory, true).at(&path)?, &call.leave_out, &mut out)?;
            } else {
                selection::pack(root, &path, &directory, &call.only, &mut out)?;
            }
        }
        Type::Regular => {
            // As itself, not as the link that led to it.
            let name = path.split()?.1.as_bytes().to_vec();
            let file = root.open_at(&path, READ).at(&path)?;
            let stat = fstat(&file).at(&path)?;
            super::read::check_regular(&path, kind(&stat))?;
            out.talk.answer(FileReply::default())?;
            out.member(Kind::File, name, Vec::new(), &stat)?;
            out.content(&path, &file, stat.st_size as u64)?;
        }
        _ => return Err(failure("NOT_A_FILE", format!("{path}: neither a file nor a directory")).into()),
    }
    writer::put_end(&mut out.buffer);
    out.flush()?;
    Ok(talk.channel.end()?)
}

fn pack_tree(path: &SandboxPath, mut tree: Tree, leave_out: &[Vec<u8>], out: &mut Out<'_, '_>) -> Result<(), Stop> {
    while let Some(found) = tree.next().at(path)? {
        if leave_out.contains(&found.path) {
            continue;
        }
        let entry = entry_in(tree.directory(), &found.name, &found.path, &found.stat);
        match entry.r#type() {
            Type::Directory => {
                let name = [found.path.as_slice(), b"/"].concat();
                out.member(Kind::Directory, name, Vec::new(), &found.stat)?;
                match tree.enter(&found) {
                    Ok(Entry::Entered | Entry::Skipped)
                    | Err(Errno::NOENT | Errno::SRCH | Errno::NOTDIR | Errno::LOOP) => {}
                    Ok(Entry::TooDeep) => {
                        return Err(failure("TOO_LARGE", format!("{}: nested too deep", below(path, &found))).into());
                    }
                    Err(error) => return Err(from_errno(below(path, &found), error).into()),
                }
            }
            Type::Symlink => pack_link(entry, &found, out)?,
            Type::Regular => pack_file(path, &tree, &found, out)?,
            _ => {}
        }
    }
    Ok(())
}

fn pack_link(entry: FileEntry, found: &Found, out: &mut Out<'_, '_>) -> Result<(), Stop> {
    // Without a target it has gone since it was found.
    if entry.target.is_empty() {
        return Ok(());
    }
    out.member(Kind::Symlink, entry.path, entry.target, &found.stat)
}

fn pack_file(path: &SandboxPath, tree: &Tree, found: &Found, out: &mut Out<'_, '_>) -> Result<(), Stop> {
    let file = match reopen(tree.directory(), &found.name, READ) {
        Ok(file) => file,
        // Gone, or no file any more.
        Err(Errno::NOENT | Errno::SRCH | Errno::LOOP | Errno::NXIO) => return Ok(()),
        Err(error) => return Err(from_errno(below(path, found), error).into()),
    };
    let stat = fstat(&file).at(path)?;
    if kind(&stat) != Type::Regular {
        return Ok(());
    }
    out.member(Kind::File, found.path.clone(), Vec::new(), &stat)?;
    out.content(below(path, found), &file, stat.st_size as u64)
}

fn below(path: &SandboxPath, found: &Found) -> String {
    let shown: String = String::from_utf8_lossy(&found.path).chars().filter(|letter| !letter.is_control()).collect();
    format!("{path}/{shown}")
}

/// Collects small things into pieces worth sending.
struct Out<'t, 'c> {
    talk: &'t mut Talk<'c>,
    buffer: Vec<u8>,
}

impl Out<'_, '_> {
    fn member(&mut self, kind: Kind, path: Vec<u8>, target: Vec<u8>, stat: &Stat) -> Result<(), Stop> {
        let size = if kind == Kind::File { stat.st_size as u64 } else { 0 };
        let (mode, modified, marks) = (stat.st_mode & 0o777, stat.st_mtime, Marks::default());
        let member = Member { kind, path, target, mode, size, modified, marks };
        writer::put_member(&mut self.buffer, &member);
        self.flush_if_full()
    }

    /// Exactly as many bytes as the header said. A file that has become shorter cannot be packed.
    fn content(&mut self, path: impl std::fmt::Display, file: &OwnedFd, size: u64) -> Result<(), Stop> {
        let mut offset = 0;
        while offset < size {
            let start = self.buffer.len();
            let wanted = PIECE_BYTES.min(usize::try_from(size - offset).unwrap_or(PIECE_BYTES));
            self.buffer.resize(start + wanted, 0);
            let result = pread(file, &mut self.buffer[start..], offset);
            self.buffer.truncate(start + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(0) => return Err(failure("UNAVAILABLE", format!("{path}: became shorter while it was read")).into()),
                Ok(length) => offset += length as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(from_errno(path, error).into()),
            }
            self.flush_if_full()?;
        }
        writer::put_padding(&mut self.buffer, size);
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), Stop> {
        if self.buffer.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.talk.channel.send(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
