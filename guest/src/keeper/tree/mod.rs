//! Trees of files that may belong to somebody else and may be hostile: never through a link, never
//! into another file system.

mod directory;
mod remove;
mod size;

pub use remove::remove_tree;
pub use size::tree_size;
