//! Which directory a copy of the project had at which path. What lies in a directory that was moved whole looks
//! untouched, file by file; that its inode is another one tells that somebody put it there.

use std::{collections::HashMap, fs, io, path::Path};

/// Beside the copy, where no sandbox sees it.
const FILE: &str = "directories";

#[derive(Default)]
pub struct Directories(HashMap<Vec<u8>, u64>);

impl Directories {
    pub fn note(&mut self, path: &[u8], inode: u64) {
        self.0.insert(path.to_vec(), inode);
    }

    pub fn is_in_place(&self, path: &[u8], inode: u64) -> bool {
        self.0.get(path) == Some(&inode)
    }

    /// Each as its inode, the length of its path, and that.
    pub fn write(&self, layer: &Path) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (path, inode) in &self.0 {
            bytes.extend_from_slice(&inode.to_le_bytes());
            bytes.extend_from_slice(&(path.len() as u32).to_le_bytes());
            bytes.extend_from_slice(path);
        }
        fs::write(layer.join(FILE), bytes)
    }

    /// Of what cannot be read, nothing is in its place: then contents are compared.
    pub fn read(layer: &Path) -> Self {
        let bytes = fs::read(layer.join(FILE)).unwrap_or_default();
        let mut found = Self::default();
        let mut rest = bytes.as_slice();
        while let Some((inode, path, after)) = take(rest) {
            found.note(path, inode);
            rest = after;
        }
        found
    }
}

fn take(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (inode, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (path, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((u64::from_le_bytes(*inode), path, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_half_of_it_is_not() {
        let dir = std::env::temp_dir().join(format!("caisson-directories-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut written = Directories::default();
        written.note(b"a", 7);
        written.note(b"a/\xff\n", 8);
        written.write(&dir).unwrap();
        let read = Directories::read(&dir);
        assert!(read.is_in_place(b"a", 7) && read.is_in_place(b"a/\xff\n", 8));
        assert!(!read.is_in_place(b"a", 8) && !read.is_in_place(b"b", 7));
        let bytes = fs::read(dir.join(FILE)).unwrap();
        fs::write(dir.join(FILE), &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(Directories::read(&dir).0.len(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
