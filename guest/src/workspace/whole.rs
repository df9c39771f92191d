//! A copy of a whole project, for sandboxes that are given one instead of an overlay.

use std::{ffi::OsStr, fs as stdfs, os::fd::OwnedFd, thread, time::Duration};

use rustix::{
    fs::{self, Mode},
    io::Errno,
};

use super::{JobError, beneath, copying, directories::Directories, layer, layer::Place};
use crate::proto::keeper::{JobDone, LayerFileType as Type};

/// Copies the project into the layer: files, links and directories, with modes and times. Sockets, FIFOs and devices
/// stay behind.
pub fn copy(place: &Place) -> Result<JobDone, JobError> {
    let device = fs::fstat(&place.lower)?.st_dev;
    let mut copier = Copier { device, directories: Directories::default() };
    let count = copier.directory(&place.lower, &place.upper, b"")?;
    copier.directories.write(&place.layer)?;
    mark(place)?;
    Ok(JobDone { count, ..JobDone::default() })
}

/// The mark is later than everything that was copied, and nothing that is written afterwards is earlier: times of files move
/// in steps of some milliseconds.
fn mark(place: &Place) -> Result<(), JobError> {
    let mark = place.layer.join(layer::COPIED);
    stdfs::write(&mark, "")?;
    let last = layer::ctime_ns(&fs::stat(&mark)?);
    while layer::ctime_ns(&fs::stat(&mark)?) <= last {
        thread::sleep(Duration::from_millis(1));
        stdfs::write(&mark, "")?;
    }
    Ok(())
}

struct Copier {
    /// The project's file system.
    device: u64,
    directories: Directories,
}

impl Copier {
    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd, path: &[u8]) -> Result<u64, JobError> {
        let mut count = 0;
        for name in beneath::names(from)? {
            let path = beneath::join(path, &name);
            count += match self.entry(from, to, &name, &path) {
                // The host removed it while it was being copied.
                Err(error) if error.errno == Errno::NOENT.raw_os_error() => 0,
                other => other.map_err(|error| named(error, &path))?,
            };
        }
        Ok(count)
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &OsStr, path: &[u8]) -> Result<u64, JobError> {
        let Some(stat) = beneath::stat(from, name)? else { return Ok(0) };
        match layer::file_type(&stat) {
            Type::Regular | Type::Symlink => copying::copy((from, name), (to, name))?,
            Type::Directory => {
                if stat.st_dev != self.device {
                    return Err(nested());
                }
                let inner = beneath::open_directory(from, name.as_encoded_bytes())?;
                match fs::mkdirat(to, name, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let made = beneath::open_directory(to, name.as_encoded_bytes())?;
                self.directories.note(path, fs::fstat(&made)?.st_ino);
                let count = self.directory(&inner, &made, path)?;
                fs::fchmod(&made, Mode::from_raw_mode(layer::permissions(&stat)))?;
                return Ok(count + 1);
            }
            _ => return Ok(0),
        }
        Ok(1)
    }
}

pub(super) fn nested() -> JobError {
    JobError::new("WORKSPACE_REFUSED", "workspace.nested: a file system is mounted inside")
}

/// Says which file it was that could not be read.
pub(super) fn named(error: JobError, path: &[u8]) -> JobError {
    if error.errno != Errno::ACCESS.raw_os_error() && error.errno != Errno::PERM.raw_os_error() {
        return error;
    }
    let message = format!("workspace.readable: {} cannot be read", String::from_utf8_lossy(path));
    JobError { code: "WORKSPACE_REFUSED", message, errno: 0 }
}
