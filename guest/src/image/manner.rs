//! What archives of each manner may hold.

use crate::{
    files::tar::{Kind, Member},
    proto::keeper::Manner,
};

/// The marker beside `upper` says when a copy of a project was complete; its content means nothing.
const COPIED: &[u8] = b"copied";
const UPPER: &[u8] = b"upper";

/// Is every archive of this manner made by Caisson itself, so that anything odd in one is an attack?
pub fn is_strict(manner: Manner) -> bool {
    manner != Manner::Unspecified
}

/// Refuses a member that an archive of this manner does not have.
pub fn admit(manner: Manner, member: &Member) -> Result<(), &'static str> {
    if !is_strict(manner) {
        return Ok(());
    }
    let marks = member.marks;
    if member.mode & 0o6000 != 0 {
        return Err("a member is set-uid or set-gid");
    }
    if marks.has_attributes || marks.is_opaque && (manner != Manner::Overlay || member.kind != Kind::Directory) {
        return Err("a member has attributes that are not taken");
    }
    match (manner, member.kind) {
        (_, Kind::File | Kind::Directory) => Ok(()),
        (Manner::Files, _) => Err("a member is neither a file nor a directory"),
        (_, Kind::Symlink | Kind::HardLink) => Ok(()),
        (Manner::Overlay, Kind::Special) if marks.is_whiteout || marks.is_fifo => Ok(()),
        (_, Kind::Special) => Err("a member is a device or a FIFO"),
    }
}

/// Is this a member that the manner passes over? What a sandbox's layer has beside what was written to the project is about
/// the host that it was on.
pub fn passes_over(manner: Manner, path: &[u8], kind: Kind) -> bool {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    manner == Manner::Overlay && first != UPPER && (path != COPIED || kind != Kind::File)
}
