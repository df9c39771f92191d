//! The journal of an apply: what is to be done, and afterwards what was done. Everything new is staged inside the
//! project's file system and the journal is on disk before the first file is touched; from then on an apply is always
//! completed, also after a crash.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsString,
    fs as stdfs,
    io::Write,
    path::{Path, PathBuf},
};

use prost::Message;
use rustix::fs::Stat;

use super::{JobError, layer, layer::Place};

/// Written when everything is staged; gone when the apply is complete.
pub const JOURNAL: &str = "journal";
/// Written when every step is done; what undo works from.
pub const APPLIED: &str = "applied";
/// There while an undo is under way.
pub const UNDOING: &str = "undoing";

#[derive(Clone, PartialEq, Message)]
pub struct Journal {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, repeated, tag = "2")]
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Act {
    Unknown = 0,
    /// Move a file out of the project, to `old-N`.
    Remove = 1,
    RemoveDirectory = 2,
    MakeDirectory = 3,
    /// Put `new-N` in place; what was there is then `new-N`.
    Place = 4,
    Chmod = 5,
}

#[derive(Clone, PartialEq, Message)]
pub struct Step {
    #[prost(enumeration = "Act", tag = "1")]
    pub act: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Its number among the staged files.
    #[prost(uint32, tag = "3")]
    pub number: u32,
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    #[prost(uint32, tag = "5")]
    pub old_mode: u32,
    /// Of the staged file: tells whether it is in place already.
    #[prost(uint64, tag = "6")]
    pub inode: u64,
    /// There was something in its place, which is now kept.
    #[prost(bool, tag = "7")]
    pub replaced: bool,
    #[prost(uint32, tag = "8")]
    pub uid: u32,
    #[prost(uint32, tag = "9")]
    pub gid: u32,
    /// What was in the project before, and what is there after the apply; 0 for nothing.
    #[prost(message, optional, tag = "10")]
    pub before: Option<Identity>,
    #[prost(message, optional, tag = "11")]
    pub after: Option<Identity>,
    /// What of the layer was applied.
    #[prost(message, optional, tag = "12")]
    pub source: Option<Identity>,
    /// What was replaced or removed, as it is kept: what other names of it are then, too.
    #[prost(message, optional, tag = "14")]
    pub kept_as: Option<Identity>,
    /// What was there before had not been changed on the host since the sandbox attached it.
    #[prost(bool, tag = "13")]
    pub clean: bool,
}

/// One state of one file: nobody can write to it without changing its ctime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Identity {
    #[prost(uint64, tag = "1")]
    pub inode: u64,
    #[prost(int64, tag = "2")]
    pub ctime: i64,
}

impl Identity {
    /// Of what was deleted in the layer.
    pub const GONE: Identity = Identity { inode: 0, ctime: 0 };

    pub fn of(stat: &Stat) -> Identity {
        Identity { inode: stat.st_ino, ctime: layer::ctime_ns(stat) }
    }

    /// What of the layer an entry is. A directory is itself whatever happens in it.
    pub fn of_source(stat: &Stat) -> Identity {
        if layer::is_whiteout(stat) {
            return Identity::GONE;
        }
        match layer::file_type(stat) {
            crate::proto::keeper::LayerFileType::Directory => {
                Identity { inode: 0, ctime: 1 + i64::from(layer::permissions(stat)) }
            }
            _ => Identity::of(stat),
        }
    }
}

impl Step {
    pub fn kept(&self) -> OsString {
        let prefix = if self.act() == Act::Remove { "old" } else { "new" };
        format!("{prefix}-{}", self.number).into()
    }
}

/// The directory in the project in which an apply stages its files.
pub fn staging_name(id: &str) -> OsString {
    format!(".caisson-apply-{id}").into()
}

/// Writes a journal so that it is there whole or not at all.
pub fn write(dir: &Path, name: &str, journal: &Journal) -> Result<(), JobError> {
    let temporary = dir.join(format!("{name}.new"));
    let mut file = stdfs::File::create(&temporary)?;
    file.write_all(&journal.encode_to_vec())?;
    file.sync_all()?;
    stdfs::rename(&temporary, dir.join(name))?;
    stdfs::File::open(dir)?.sync_all()?;
    Ok(())
}

pub fn read(file: &Path) -> Result<Journal, JobError> {
    Journal::decode(&*stdfs::read(file)?)
        .map_err(|_| JobError::new("CORRUPT_LOG", "the journal of an apply is damaged"))
}

/// The directories of the applies, oldest first.
pub fn applies(place: &Place) -> Result<Vec<PathBuf>, JobError> {
    let mut dirs = Vec::new();
    for entry in stdfs::read_dir(&place.applies).into_iter().flatten() {
        dirs.push(entry?.path());
    }
    dirs.sort();
    Ok(dirs)
}

/// The file that says what undo has restored, as a journal without acts.
pub fn restored_file(place: &Place) -> PathBuf {
    place.layer.join("restored")
}

/// What we ourselves did to the project.
#[derive(Default)]
pub struct Known {
    /// States of the project's files that are our own work.
    ours: HashSet<Identity>,
    inodes: HashSet<u64>,
    /// What of the layer the project was given last, and that was not taken back since.
    delivered: HashMap<Vec<u8>, Identity>,
    /// What the layer lacks, unless it is met there: what the project was given of it, and what was deleted inside,
    /// applied and taken back. An overlay that never saw the project's directory around it marks no deletion.
    missing: HashSet<Vec<u8>>,
}

impl Known {
    pub fn read(place: &Place) -> Result<Known, JobError> {
        let mut known = Known::default();
        for dir in applies(place)? {
            let file = dir.join(APPLIED);
            if !file.exists() {
                continue;
            }
            for step in read(&file)?.steps {
                known.ours.extend(step.after.into_iter().chain(step.kept_as));
                let source = step.source.unwrap_or(Identity::GONE);
                if source == Identity::GONE {
                    known.missing.remove(&step.path);
                } else {
                    known.missing.insert(step.path.clone());
                }
                known.delivered.insert(step.path, source);
            }
        }
        if restored_file(place).exists() {
            for step in read(&restored_file(place))?.steps {
                if step.source == Some(Identity::GONE) {
                    known.missing.insert(step.path);
                }
                known.ours.extend(step.after);
            }
        }
        known.inodes = known.ours.iter().map(|ours| ours.inode).collect();
        Ok(known)
    }

    /// Did we make the project's file what it is?
    pub fn is_ours(&self, stat: &Stat) -> bool {
        self.ours.contains(&Identity::of(stat))
    }

    /// Did we make this directory of the project? Its ctime tells of its entries too.
    pub fn is_our_directory(&self, stat: &Stat) -> bool {
        self.inodes.contains(&stat.st_ino)
    }

    /// The layer has something to tell of this path.
    pub fn met(&mut self, path: &[u8]) {
        self.missing.remove(path);
    }

    /// What was never met, a directory before what is in it.
    pub fn take_missing(&mut self) -> BTreeSet<Vec<u8>> {
        std::mem::take(&mut self.missing).into_iter().collect()
    }

    /// Did the project get exactly this already, whatever has become of it since?
    pub fn is_delivered(&self, path: &[u8], source: Identity) -> bool {
        self.delivered.get(path) == Some(&source)
    }

    /// Did the project get anything for this path, be it a deletion?
    pub fn was_delivered(&self, path: &[u8]) -> bool {
        self.delivered.contains_key(path)
    }
}
