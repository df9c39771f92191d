//! The caller's files and variables that the CLI asks for: read here, with the caller's rights, and
//! sent piece by piece. A file is read only when it polls as readable, so that a pipe such as
//! `<(command)` can take its time.

use std::{
    env,
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::proto::terminal::{EnvRequest, FileContent, ReadFile};

const PIECE_BYTES: usize = 64 * 1024;

/// Files that are being sent.
#[derive(Default)]
pub struct Answers {
    files: Vec<Sending>,
}

struct Sending {
    id: u32,
    file: OwnedFd,
}

impl Answers {
    /// Opens a file; what goes wrong at once is the answer.
    pub fn begin(&mut self, request: &ReadFile) -> Option<FileContent> {
        let path = OsStr::from_bytes(&request.path);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => {
                self.files.push(Sending { id: request.id, file });
                None
            }
            Err(error) => Some(failed(request.id, error)),
        }
    }

    /// The files to wait for, in an order that `advance` understands.
    pub fn waits_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.files.iter().map(|sending| sending.file.as_fd())
    }

    /// Reads the next piece of the file at `index`, which is ready.
    pub fn advance(&mut self, index: usize) -> Option<FileContent> {
        let sending = &self.files[index];
        let mut data = vec![0; PIECE_BYTES];
        let (content, is_over) = match rustix::io::read(&sending.file, &mut data) {
            Ok(length) => {
                data.truncate(length);
                (FileContent { id: sending.id, data, end: length == 0, errno: 0 }, length == 0)
            }
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(error) => (failed(sending.id, error), true),
        };
        if is_over {
            self.files.remove(index);
        }
        Some(content)
    }
}

fn failed(id: u32, error: Errno) -> FileContent {
    FileContent { id, data: Vec::new(), end: true, errno: error.raw_os_error().unsigned_abs() }
}

/// The variables that are set, as NUL-separated NAME=value, in pieces.
pub fn variables(request: &EnvRequest) -> Vec<FileContent> {
    let mut data = Vec::new();
    for name in &request.names {
        let Some(value) = env::var_os(name) else { continue };
        if !data.is_empty() {
            data.push(0);
        }
        data.extend_from_slice(name.as_bytes());
        data.push(b'=');
        data.extend_from_slice(value.as_bytes());
    }
    let mut pieces: Vec<FileContent> = data
        .chunks(PIECE_BYTES)
        .map(|piece| FileContent { id: request.id, data: piece.to_vec(), end: false, errno: 0 })
        .collect();
    pieces.push(FileContent { id: request.id, data: Vec::new(), end: true, errno: 0 });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_not_set_are_left_out() {
        let names = vec!["PATH".into(), "CAISSON_NO_SUCH_VARIABLE".into()];
        let pieces = variables(&EnvRequest { id: 7, names });
        let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.data.clone()).collect();
        assert!(all.starts_with(b"PATH=") && !all.contains(&0));
        assert!(pieces.last().unwrap().end && pieces.iter().all(|piece| piece.id == 7));
    }

    #[test]
    fn a_file_is_sent_to_its_end_and_a_missing_one_says_why() {
        let mut answers = Answers::default();
        let missing = answers.begin(&ReadFile { id: 1, path: b"/no/such/file".to_vec() }).unwrap();
        assert_eq!((missing.errno, missing.end), (Errno::NOENT.raw_os_error() as u32, true));
        assert!(answers.begin(&ReadFile { id: 2, path: b"/proc/self/comm".to_vec() }).is_none());
        assert!(!answers.advance(0).unwrap().data.is_empty());
        let last = answers.advance(0).unwrap();
        assert!(last.end && last.data.is_empty() && answers.waits_for().count() == 0);
    }

    #[test]
    fn a_directory_is_not_a_file() {
        let mut answers = Answers::default();
        assert!(answers.begin(&ReadFile { id: 3, path: b"/".to_vec() }).is_none());
        assert_eq!(answers.advance(0).unwrap().errno, Errno::ISDIR.raw_os_error() as u32);
    }
}
