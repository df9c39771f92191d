//! Descriptors that a started program gets: files, listening sockets, memory that cannot be changed.

use std::{
    fs::File,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags, fchown, fcntl_add_seals, fstat, ftruncate, memfd_create, open},
    io::{Errno, fcntl_dupfd_cloexec},
    process::{Gid, Uid},
};

use super::{
    failure::Failure,
    pages::{PAGE, PIECE, write_pages},
    socket,
};
use crate::proto::keeper::{Handed, handed::Kind};

const MAX_HANDED: usize = 24;
/// By which a machine's memory is found again among what its process has mapped.
pub const MEMORY_NAME: &std::ffi::CStr = c"caisson-memory";

/// What a file was when it was copied: device, inode, time of its content, size.
type Version = (u64, u64, i64, i64, u64);

struct Copy {
    /// Kept open, so that its number goes to no other file.
    file: File,
    version: Version,
    memory: OwnedFd,
    /// What it took when it was made; nothing of one that somebody else fills.
    blocks: Option<u64>,
}

/// Reading or writing an empty page of what is mapped makes one of zeros for all who have it mapped, sealed or not, which nobody can
/// take away again. A copy that has grown by so much, in the unit of `stat`, is made anew: those who use it keep it until they end.
const GROWN_BLOCKS: u64 = 1536 * 1024 * 1024 / 512;

impl Copy {
    fn has_grown_by(&self, more: u64) -> bool {
        let Some(before) = self.blocks else { return false };
        blocks_of(&self.memory).is_ok_and(|now| now > before + more)
    }
}

/// Copies of files in memory. Only the newest version of a file is kept, and only while the file has a name.
pub struct Memories {
    copies: Vec<Copy>,
    may_grow_by: u64,
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

impl Default for Memories {
    fn default() -> Self {
        Self { copies: Vec::new(), may_grow_by: GROWN_BLOCKS }
    }
}

impl Memories {
    /// A file that is gone or has changed needs no memory any more; memory that has grown is made anew.
    pub fn prune(&mut self) {
        let is_same = |copy: &Copy| version_of(&copy.file).is_ok_and(|now| now == copy.version);
        let has_name = |copy: &Copy| copy.file.metadata().is_ok_and(|it| it.nlink() > 0);
        let more = self.may_grow_by;
        self.copies.retain(|copy| has_name(copy) && is_same(copy) && !copy.has_grown_by(more));
    }

    /// Empty memory that somebody fills and seals, held for as long as the file is there that is made at this path. Gives a
    /// path by which workers, who inherit nothing, can open it.
    pub fn hold(&mut self, path: &str) -> Result<String, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::from_raw_mode(0o600))?);
        let memory = new_memory()?;
        let place = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        self.copies.push(Copy { version: version_of(&file)?, file, memory, blocks: None });
        Ok(place)
    }

    fn get(&mut self, path: &str) -> Result<OwnedFd, Errno> {
        self.prune();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty())?);
        let version = version_of(&file)?;
        if let Some(copy) = self.copies.iter().find(|copy| copy.version == version) {
            return fcntl_dupfd_cloexec(&copy.memory, 3);
        }
        let (.., length) = version;
        if length == 0 {
            // The keeper that held it is gone.
            return Err(Errno::NODATA);
        }
        let memory = sealed_copy(&file, length)?;
        let given = fcntl_dupfd_cloexec(&memory, 3)?;
        self.copies.push(Copy { file, version, blocks: Some(blocks_of(&memory)?), memory });
        Ok(given)
    }
}

fn version_of(file: &File) -> Result<Version, Errno> {
    let found = file.metadata().map_err(|_| Errno::IO)?;
    Ok((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

fn blocks_of(memory: &OwnedFd) -> Result<u64, Errno> {
    Ok(fstat(memory)?.st_blocks.try_into().unwrap_or(0))
}

fn new_memory() -> Result<OwnedFd, Errno> {
    memfd_create(MEMORY_NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
}

/// Nobody can change it any more.
pub fn seal_memory(memory: impl AsFd) -> Result<(), Errno> {
    fcntl_add_seals(memory, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}

/// Pages of zeros take no memory.
fn sealed_copy(file: &File, length: u64) -> Result<OwnedFd, Errno> {
    let copy = new_memory()?;
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
    seal_memory(&copy)?;
    Ok(copy)
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
        // By another name it is the same.
        let renamed = path.with_extension("renamed");
        std::fs::rename(&path, &renamed).unwrap();
        let again = memories.get(renamed.to_str().unwrap()).unwrap();
        assert_eq!(File::from(again).metadata().unwrap().ino(), copy.metadata().unwrap().ino());
        std::fs::remove_file(&renamed).unwrap();
        assert!(memories.get(renamed.to_str().unwrap()).is_err());
        assert!(memories.copies.is_empty());
    }

    #[test]
    fn memory_that_has_grown_is_made_anew() {
        let path = std::env::temp_dir().join(format!("caisson-grown-{}", std::process::id()));
        std::fs::write(&path, [7; PAGE]).unwrap();
        let mut memories = Memories { may_grow_by: 0, ..Memories::default() };
        let number = |memory: OwnedFd| File::from(memory).metadata().unwrap().ino();
        let first = number(memories.get(path.to_str().unwrap()).unwrap());
        assert_eq!(number(memories.get(path.to_str().unwrap()).unwrap()), first);
        // As though its page had come later: really growing would need somebody who has it mapped.
        memories.copies[0].blocks = Some(0);
        assert_ne!(number(memories.get(path.to_str().unwrap()).unwrap()), first);
        memories.copies[0].blocks = None;
        memories.prune();
        assert_eq!(memories.copies.len(), 1, "what is held cannot be made again");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn memory_that_is_held_stays_while_its_file_does() {
        let path = std::env::temp_dir().join(format!("caisson-held-{}", std::process::id()));
        let path = path.to_str().unwrap();
        let mut memories = Memories::default();
        let held = memories.hold(path).unwrap();
        let memory = File::options().write(true).open(held).unwrap();
        memory.write_at(b"held", 0).unwrap();
        seal_memory(&memory).unwrap();
        assert!(memories.hold(path).is_err(), "one at a time");
        let mut bytes = [0; 4];
        File::from(memories.get(path).unwrap()).read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"held");
        assert_eq!(Memories::default().get(path).unwrap_err(), Errno::NODATA);
        std::fs::remove_file(path).unwrap();
        memories.prune();
        assert!(memories.copies.is_empty());
    }
}
