//! How much a tree takes on disk.

use std::{collections::HashSet, os::fd::OwnedFd};

use rustix::fs::{AtFlags, FileType, statat};

use super::directory::{entries, open_child, open_root};
use crate::{
    keeper::failure::Failure,
    proto::keeper::{Size, keeper_reply::Reply},
    sys::own_user_namespace,
};

/// Deeper directories are not counted; nobody's real files are that deep.
const MAX_DEPTH: usize = 512;

/// In a worker. What cannot be read is not counted.
pub fn tree_size(path: &str) -> Result<Reply, Failure> {
    read_everything_of_ours();
    let root = open_root(path)?;
    let mut count = Count::default();
    count.walk(&root, 0);
    Ok(Reply::Size(count.size))
}

/// Directories with mode 000 are their owner's all the same: as the root of a user namespace with
/// our own uid in it, we can read them. Where that is impossible they are left out.
fn read_everything_of_ours() {
    if !rustix::process::geteuid().is_root() {
        let _ = own_user_namespace::enter();
    }
}

#[derive(Default)]
struct Count {
    size: Size,
    /// Files with several names, each counted once.
    linked: HashSet<(u64, u64)>,
}

impl Count {
    fn walk(&mut self, directory: &OwnedFd, depth: usize) {
        let Ok((readable, found)) = entries(directory, false) else { return };
        for entry in found {
            let Ok(status) = statat(&readable, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
            if !is_directory && status.st_nlink > 1 && !self.linked.insert((status.st_dev, status.st_ino)) {
                continue;
            }
            self.size.bytes += status.st_blocks as u64 * 512;
            self.size.files += 1;
            if is_directory
                && depth < MAX_DEPTH
                && let Ok(child) = open_child(&readable, &entry.name)
            {
                self.walk(&child, depth + 1);
            }
        }
    }
}
