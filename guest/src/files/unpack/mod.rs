//! Unpacking a tar stream below a directory, whole or not at all: members go into a hidden directory beside their
//! place first, and only an archive that was good to its end is moved in.
//!
//! Files and links of the same name are replaced, directories merged. Existing directories keep their mode.

mod merge;
mod names;
mod stage;

use super::{
    Talk,
    failure::{Stop, failure},
    path::SandboxPath,
    root::Root,
    tar::reader::Reader,
};
use crate::proto::link::{Failure, FileReply, UnpackCall};
pub use names::clean as clean_member;
use stage::Stage;

pub fn unpack(root: &Root, call: &UnpackCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    let mut stage = Stage::new(root, &path, call)?;
    let mut reader = Reader::default();
    while let Some(piece) = talk.channel.receive()? {
        reader.take(&piece, &mut |event| stage.take(event)).map_err(|Refusal(failure)| failure)?;
    }
    reader.finish().map_err(|why| Refusal::from(why).0)?;
    merge::merge(root, &path, &stage)?;
    talk.answer(FileReply { entry: None, files: stage.files, bytes: stage.bytes })
}

/// Why an archive is not taken.
struct Refusal(Failure);

impl From<&'static str> for Refusal {
    fn from(why: &'static str) -> Self {
        Self(failure("HOSTILE_ARCHIVE", why))
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}
