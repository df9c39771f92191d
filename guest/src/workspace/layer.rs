//! A sandbox's writable layer as overlayfs leaves it: what is there, what is whited out, what is opaque.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self, FileType, Stat},
    io::Errno,
};

use super::{JobError, beneath};
use crate::proto::keeper::{LayerFileType, LayerState, WorkspaceJob};

/// The file that is made when a copy is complete.
pub const COPIED: &str = "copied";

/// The directories a job works on.
pub struct Place {
    /// The project.
    pub lower: OwnedFd,
    /// What the sandbox wrote, or the copy of the project that it was given.
    pub upper: OwnedFd,
    /// Of a copy: when it was complete. What has an earlier ctime was not touched since.
    pub copied_at_ns: Option<i64>,
    /// The directory around them.
    pub layer: PathBuf,
    /// Where applies are kept.
    pub applies: PathBuf,
}

impl Place {
    pub fn open(job: &WorkspaceJob) -> Result<Place, JobError> {
        let layer = Path::new(&job.layer);
        Ok(Place {
            lower: open_directory(Path::new(&job.lower))?,
            upper: open_directory(&layer.join("upper"))?,
            copied_at_ns: if job.is_copy { Some(copied_at(layer)) } else { None },
            applies: layer.join("applies"),
            layer: layer.to_path_buf(),
        })
    }
}

/// A directory that a job names.
pub fn open_directory(path: &Path) -> Result<OwnedFd, JobError> {
    let flags = fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC | fs::OFlags::NOFOLLOW;
    fs::open(path, flags, fs::Mode::empty()).map_err(|errno| JobError {
        code: "PATH_NOT_FOUND",
        message: "the project or its changes are not there any more".into(),
        errno: errno.raw_os_error(),
    })
}

fn copied_at(layer: &Path) -> i64 {
    fs::stat(layer.join(COPIED)).map_or(i64::MIN, |stat| ctime_ns(&stat))
}

/// Is this how overlayfs marks a deleted name?
pub fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Does this directory hide everything that the project has below it?
pub fn is_opaque(dir: impl AsFd) -> bool {
    let mut value = [0; 4];
    matches!(fs::fgetxattr(dir, "user.overlay.opaque", &mut value[..]), Ok(1) if value[0] == b'y')
}

pub fn file_type(stat: &Stat) -> LayerFileType {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => LayerFileType::Regular,
        FileType::Directory => LayerFileType::Directory,
        FileType::Symlink => LayerFileType::Symlink,
        _ => LayerFileType::Special,
    }
}

/// Permission bits that may reach the project: never set-uid, set-gid or sticky.
pub fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & 0o777
}

pub fn ctime_ns(stat: &Stat) -> i64 {
    stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec as i64
}

/// When something was made, where the file system knows.
pub fn born_ns(dir: impl AsFd, name: &OsStr) -> Option<i64> {
    let flags = fs::AtFlags::SYMLINK_NOFOLLOW;
    let known = fs::statx(dir, name, flags, fs::StatxFlags::BTIME).ok()?;
    let has = known.stx_mask & fs::StatxFlags::BTIME.bits() != 0;
    has.then_some(known.stx_btime.tv_sec * 1_000_000_000 + i64::from(known.stx_btime.tv_nsec))
}

pub fn mtime_ns(stat: &Stat) -> i64 {
    stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec as i64
}

/// What is told of a file, without its content.
pub fn state(dir: impl AsFd, name: &OsStr, stat: &Stat) -> Result<LayerState, Errno> {
    let kind = file_type(stat);
    let target = match kind {
        LayerFileType::Symlink => fs::readlinkat(dir, name, Vec::new())?.into_bytes(),
        _ => Vec::new(),
    };
    Ok(LayerState {
        r#type: kind.into(),
        mode: permissions(stat),
        size: if kind == LayerFileType::Regular { stat.st_size as u64 } else { 0 },
        target,
        mtime_ns: mtime_ns(stat),
        content: None,
        binary: false,
    })
}

/// The state of something known to be there, by its path.
pub fn stat_path(root: impl AsFd, path: &[u8]) -> Result<Option<Stat>, Errno> {
    let Some((parent, name)) = beneath::split(path) else { return Err(Errno::INVAL) };
    match beneath::open_directory(root, parent) {
        Ok(dir) => beneath::stat(&dir, name),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}
