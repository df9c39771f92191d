//! Tar archives: a strict reader and a writer that gives the same bytes for the same tree.

mod header;
pub mod pax;
pub mod reader;
mod sparse;
pub mod writer;

pub const BLOCK_BYTES: usize = 512;

/// What a member is; everything else is refused by the reader and skipped by the writer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device or FIFO, where the reader was asked to tell of them instead of refusing.
    Special,
}

/// One member, without its content.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub kind: Kind,
    pub path: Vec<u8>,
    pub target: Vec<u8>,
    pub mode: u32,
    /// Of a file: its own, holes included.
    pub size: u64,
    /// Whole seconds.
    pub modified: i64,
    pub marks: Marks,
}

/// What only archives of an overlay's layer say, and what is refused elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Marks {
    /// Of its time.
    pub nanoseconds: u32,
    /// A directory that hides everything below it.
    pub is_opaque: bool,
    /// The device that stands for a removed file.
    pub is_whiteout: bool,
    pub is_fifo: bool,
    /// It has attributes, access lists or labels of a kind that is never taken.
    pub has_attributes: bool,
}
