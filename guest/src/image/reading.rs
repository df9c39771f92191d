//! An archive from its first byte to its last, and how much it may hold.

use std::io::Read;

use super::Trouble;
use crate::{
    files::tar::{
        Member,
        reader::{Event, Reader},
    },
    proto::keeper::ImageDone,
};

const PIECE_BYTES: usize = 256 << 10;

/// Tells everything that an archive has.
pub fn read_all(
    archive: &mut impl Read,
    tell: &mut impl FnMut(Event<'_>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut reader = Reader::telling_special();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = archive.read(&mut piece)?;
        if length == 0 {
            return Ok(reader.finish()?);
        }
        reader.take(&piece[..length], tell)?;
    }
}

/// Adds a member to what was there before.
pub fn count(done: &mut ImageDone, member: &Member, max_files: u64, max_bytes: u64) -> Result<(), Trouble> {
    done.files += 1;
    done.bytes = done.bytes.saturating_add(member.size);
    if done.files > max_files {
        return Err(Trouble::new("TOO_LARGE", format!("an archive has more than {max_files} members")));
    }
    if done.bytes > max_bytes {
        return Err(Trouble::new("TOO_LARGE", format!("an archive unpacks to more than {max_bytes} bytes")));
    }
    Ok(())
}
