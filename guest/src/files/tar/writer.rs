//! Writing archives: nothing in them depends on who writes or when.

use super::{
    BLOCK_BYTES, Kind, Member,
    header::{self, Block},
    pax,
};

/// The header of one member, with an extended one before it where ustar cannot say it.
pub fn put_member(out: &mut Vec<u8>, member: &Member) {
    let mut block = [0_u8; BLOCK_BYTES];
    let mut extra = Vec::new();
    if !put_path(&mut block, &member.path) {
        put_bytes(&mut extra, "path", &member.path);
        put_text(&mut block, header::NAME, &member.path);
    }
    if !put_text(&mut block, header::LINK, &member.target) {
        put_bytes(&mut extra, "linkpath", &member.target);
    }
    if !header::put_number(&mut block[header::SIZE], member.size) {
        pax::put(&mut extra, "size", member.size.to_string().as_bytes());
    }
    let time = u64::try_from(member.modified).ok();
    if !time.is_some_and(|time| header::put_number(&mut block[header::MTIME], time)) {
        pax::put(&mut extra, "mtime", member.modified.to_string().as_bytes());
    }
    let kind = match member.kind {
        Kind::File => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::Directory => b'5',
        // Nobody packs one.
        Kind::Special => b'6',
    };
    if !extra.is_empty() {
        let mut speaking = [0_u8; BLOCK_BYTES];
        put_text(&mut speaking, header::NAME, b"PaxHeader");
        header::put_number(&mut speaking[header::SIZE], extra.len() as u64);
        header::put_number(&mut speaking[header::MTIME], 0);
        seal(&mut speaking, b'x', 0o644);
        out.extend_from_slice(&speaking);
        out.extend_from_slice(&extra);
        put_padding(out, extra.len() as u64);
    }
    seal(&mut block, kind, member.mode);
    out.extend_from_slice(&block);
}

/// Fills up to a whole block after content of this size.
pub fn put_padding(out: &mut Vec<u8>, size: u64) {
    let over = (size % BLOCK_BYTES as u64) as usize;
    if over > 0 {
        out.resize(out.len() + BLOCK_BYTES - over, 0);
    }
}

/// The archive's end: two blocks of zeros.
pub fn put_end(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * BLOCK_BYTES, 0);
}

fn seal(block: &mut Block, kind: u8, mode: u32) {
    header::put_number(&mut block[header::MODE], u64::from(mode));
    header::put_number(&mut block[header::UID], 0);
    header::put_number(&mut block[header::GID], 0);
    block[header::TYPE] = kind;
    block[header::MAGIC].copy_from_slice(header::USTAR);
    let sum = header::checksum(block);
    block[header::CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A name of up to 100 bytes, or one that can be cut in two at a slash.
fn put_path(block: &mut Block, path: &[u8]) -> bool {
    if put_text(block, header::NAME, path) {
        return true;
    }
    // The last byte is left out: a directory's slash is no place to cut.
    let cuts = path[..path.len() - 1].iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let cut = cuts.filter(|at| *at > 0 && *at <= header::PREFIX.len()).find(|at| path.len() - at - 1 <= 100);
    let Some(cut) = cut else { return false };
    put_text(block, header::PREFIX, &path[..cut]) && put_text(block, header::NAME, &path[cut + 1..])
}

/// Whether it fits; what does not is cut off, for those who read nothing else.
fn put_text(block: &mut Block, field: std::ops::Range<usize>, text: &[u8]) -> bool {
    let length = text.len().min(field.len());
    block[field.start..field.start + length].copy_from_slice(&text[..length]);
    length == text.len()
}

/// Names may be any bytes; readers are told when they are not text.
fn put_bytes(extra: &mut Vec<u8>, key: &str, value: &[u8]) {
    if extra.is_empty() && std::str::from_utf8(value).is_err() {
        pax::put(extra, "hdrcharset", b"BINARY");
    }
    pax::put(extra, key, value);
}
