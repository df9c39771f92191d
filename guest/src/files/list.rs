//! Listing a directory, or everything below it.

use prost::Message;
use rustix::io::Errno;

use super::{
    Talk,
    directory::Tree,
    entry::entry_in,
    failure::{At, Stop},
    path::SandboxPath,
    root::{DIRECTORY, Root},
};
use crate::{
    proto::link::{Entries, FileReply, ListCall, file_entry::Type},
    rules::PATH_MAX_BYTES,
};

/// One message holds at most this much; no entry comes near it.
const BATCH_BYTES: usize = 256 * 1024;

pub fn list(root: &Root, call: &ListCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    let directory = root.open_at(&path, DIRECTORY).at(&path)?;
    let mut tree = Tree::new(directory, false).at(&path)?;
    talk.answer(FileReply::default())?;
    let mut batch = Entries::default();
    let mut bytes = 0;
    while let Some(found) = tree.next().at(&path)? {
        // What no call could name is not listed.
        if found.path.len() > PATH_MAX_BYTES {
            continue;
        }
        let entry = entry_in(tree.directory(), &found.name, &found.path, &found.stat);
        if call.recursive && entry.r#type() == Type::Directory {
            match tree.enter(&found) {
                // Closed, gone or replaced: it is listed, its content cannot be.
                Ok(_) | Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::SRCH | Errno::NOTDIR | Errno::LOOP) => {
                }
                Err(error) => return Err(Err::<(), _>(error).at(&path).unwrap_err().into()),
            }
        }
        // A tag and a length come before each entry.
        let length = entry.encoded_len() + 8;
        if bytes + length > BATCH_BYTES {
            talk.channel.send_message(std::mem::take(&mut batch).encode_to_vec())?;
            bytes = 0;
        }
        bytes += length;
        batch.entries.push(entry);
    }
    if !batch.entries.is_empty() {
        talk.channel.send_message(batch.encode_to_vec())?;
    }
    Ok(talk.channel.end()?)
}
