//! Writing memory page by page, without pages of zeros.

use std::os::fd::AsFd;

use rustix::io::{Errno, pwrite};

pub const PAGE: usize = 4096;
/// So much is read at once.
pub const PIECE: usize = 256 * PAGE;

/// Writes the pages of `bytes` that are not zero; gives their size.
pub fn write_pages(file: impl AsFd, bytes: &[u8], at: u64) -> Result<u64, Errno> {
    let (mut written, mut begin, mut end) = (0, 0, 0);
    for page in bytes.chunks(PAGE) {
        let next = end + page.len();
        if is_zero(page) {
            written += write_all(file.as_fd(), &bytes[begin..end], at + begin as u64)?;
            begin = next;
        }
        end = next;
    }
    Ok(written + write_all(file, &bytes[begin..end], at + begin as u64)?)
}

fn write_all(file: impl AsFd, mut bytes: &[u8], mut at: u64) -> Result<u64, Errno> {
    let length = bytes.len() as u64;
    while !bytes.is_empty() {
        let count = pwrite(file.as_fd(), bytes, at)?;
        (bytes, at) = (&bytes[count..], at + count as u64);
    }
    Ok(length)
}

fn is_zero(page: &[u8]) -> bool {
    // In lines: most pages that are not zero show it in the first.
    page.chunks(128).all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::FileExt};

    use super::*;

    #[test]
    fn pages_of_zeros_are_passed_over_and_all_others_are_in_their_place() {
        let path = std::env::temp_dir().join(format!("caisson-pages-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut bytes = vec![0; 6 * PAGE + 100];
        (bytes[PAGE + 5], bytes[2 * PAGE], bytes[4 * PAGE + PAGE - 1], bytes[6 * PAGE + 99]) = (1, 2, 3, 4);
        assert_eq!(write_pages(&file, &bytes, PAGE as u64).unwrap(), 3 * PAGE as u64 + 100);
        let mut read = vec![9; bytes.len()];
        file.read_exact_at(&mut read, PAGE as u64).unwrap();
        assert!(read == bytes);
    }
}
