//! Descriptors that a started program gets: files, listening sockets, memory that cannot be changed.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags, fchown, fcntl_add_seals, ftruncate, memfd_create, open},
    io::{Errno, fcntl_dupfd_cloexec, pwrite},
    process::{Gid, Uid},
};

use super::{failure::Failure, socket};
use crate::proto::keeper::{Handed, handed::Kind};

const MAX_HANDED: usize = 24;
const PAGE: usize = 4096;
const PIECE: usize = 256 * PAGE;

/// What a file was when it was copied.
type Version = (u64, u64, i64, i64, u64);

/// Copies of files in memory, by path. Only the newest version of a path is kept.
#[derive(Default)]
pub struct Memories {
    copies: HashMap<String, (Version, OwnedFd)>,
}

/// `owner`: who the program will run as, when that is not the keeper.
pub fn open_all(
    wanted: &[Handed],
    memories: &mut Memories,
    owner: Option<(u32, u32)>,
) -> Result<Vec<OwnedFd>, Failure> {
    if wanted.len() > MAX_HANDED {
        return Err(Failure::new("INVALID_INPUT", format!("at most {MAX_HANDED} descriptors can be handed over")));
    }
    wanted.iter().map(|one| open_one(one, memories, owner)).collect()
}

fn open_one(wanted: &Handed, memories: &mut Memories, owner: Option<(u32, u32)>) -> Result<OwnedFd, Failure> {
    let failed = |errno| Failure::errno("SANDBOX_FAILED", format!("opening {}", wanted.name), errno);
    let path = Path::new(&wanted.path);
    let file = |flags| open(path, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
    match wanted.kind() {
        Kind::Read => file(OFlags::RDONLY).map_err(failed),
        // Its own, so that it can be opened again by its number.
        Kind::Update => file(OFlags::RDWR)
            .and_then(|opened| {
                let Some((uid, gid)) = owner else { return Ok(opened) };
                fchown(&opened, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
                Ok(opened)
            })
            .map_err(failed),
        Kind::Listen => socket::listening(path).map_err(failed),
        Kind::SealedMemory => memories.get(&wanted.path).map_err(failed),
        Kind::Unspecified => Err(Failure::new("INVALID_INPUT", "a descriptor of no known kind")),
    }
}

impl Memories {
    fn get(&mut self, path: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A path that is gone needs no memory any more.
        self.copies.retain(|path, _| Path::new(path).exists());
        let file = File::from(open(path, flags, Mode::empty())?);
        let found = file.metadata().map_err(|_| Errno::IO)?;
        let version = (found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len());
        if let Some((known, copy)) = self.copies.get(path)
            && *known == version
        {
            return fcntl_dupfd_cloexec(copy, 3);
        }
        let copy = sealed_copy(&file, found.len())?;
        let given = fcntl_dupfd_cloexec(&copy, 3)?;
        self.copies.insert(path.into(), (version, copy));
        Ok(given)
    }
}

/// Pages of zeros take no memory.
fn sealed_copy(file: &File, length: u64) -> Result<OwnedFd, Errno> {
    let copy = memfd_create(c"caisson-memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&copy, length)?;
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    while at < length {
        // What was never written is passed over without being read.
        at = match rustix::fs::seek(file.as_fd(), rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data / PAGE as u64 * PAGE as u64,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let count = file.read_at(&mut buffer, at).map_err(|_| Errno::IO)?;
        if count == 0 {
            break;
        }
        write_pages(copy.as_fd(), &buffer[..count], at)?;
        at += count as u64;
    }
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(copy)
}

fn write_pages(copy: impl AsFd, bytes: &[u8], at: u64) -> Result<(), Errno> {
    for (index, page) in bytes.chunks(PAGE).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            pwrite(copy.as_fd(), page, at + (index * PAGE) as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn sealed_memory_has_the_files_bytes_and_cannot_be_changed() {
        let path = std::env::temp_dir().join(format!("caisson-memory-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&[0; 2 * PAGE]).unwrap();
        file.write_all(&[7; PAGE]).unwrap();
        file.set_len(10 * PAGE as u64).unwrap();
        drop(file);
        let mut memories = Memories::default();
        let copy = File::from(memories.get(path.to_str().unwrap()).unwrap());
        let mut bytes = vec![1; 10 * PAGE];
        copy.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..2 * PAGE].iter().all(|byte| *byte == 0));
        assert!(bytes[2 * PAGE..3 * PAGE].iter().all(|byte| *byte == 7));
        assert_eq!(copy.metadata().unwrap().blocks() * 512, PAGE as u64);
        assert!(copy.write_at(b"x", 0).is_err() && copy.set_len(0).is_err());
        let again = memories.get(path.to_str().unwrap()).unwrap();
        assert_eq!(File::from(again).metadata().unwrap().ino(), copy.metadata().unwrap().ino());
        std::fs::remove_file(&path).unwrap();
        assert!(memories.get(path.to_str().unwrap()).is_err());
    }
}
