//! Contents: equal or not, and read for people.

use std::{ffi::OsStr, fs::File, io::Read, os::fd::AsFd};

use rustix::io::Errno;

use super::{JobError, beneath};
use crate::proto::keeper::LayerState;

const PIECE: usize = 128 << 10;

/// Have two regular files the same content?
pub fn same_content(a: (impl AsFd, &OsStr), b: (impl AsFd, &OsStr)) -> Result<bool, JobError> {
    let mut a = File::from(beneath::open_file(a.0, a.1)?);
    let mut b = File::from(beneath::open_file(b.0, b.1)?);
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let n = read_full(&mut a, &mut left)?;
        let m = read_full(&mut b, &mut right)?;
        if left[..n] != right[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

/// Adds the content to a state when it is small enough, and says whether it looks binary.
pub fn read_content(
    dir: impl AsFd,
    name: &OsStr,
    state: &mut LayerState,
    limit: u64,
    binary: bool,
) -> Result<(), JobError> {
    let mut file = match beneath::open_file(dir, name) {
        Ok(file) => File::from(file),
        // It changed its kind since it was seen: tell what is known.
        Err(Errno::INVAL | Errno::NOENT | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut head = vec![0; 8192];
    let n = read_full(&mut file, &mut head)?;
    head.truncate(n);
    state.binary = head.contains(&0);
    if state.size > limit || (state.binary && !binary) {
        return Ok(());
    }
    file.take(limit + 1 - head.len() as u64).read_to_end(&mut head)?;
    if head.len() as u64 <= limit {
        state.content = Some(head);
    }
    Ok(())
}

fn read_full(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}
