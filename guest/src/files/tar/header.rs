//! The header block of a member: where its fields are and how numbers are written.

use super::BLOCK_BYTES;

pub type Block = [u8; BLOCK_BYTES];

pub const NAME: std::ops::Range<usize> = 0..100;
pub const MODE: std::ops::Range<usize> = 100..108;
pub const UID: std::ops::Range<usize> = 108..116;
pub const GID: std::ops::Range<usize> = 116..124;
pub const SIZE: std::ops::Range<usize> = 124..136;
pub const MTIME: std::ops::Range<usize> = 136..148;
pub const CHECKSUM: std::ops::Range<usize> = 148..156;
pub const TYPE: usize = 156;
pub const LINK: std::ops::Range<usize> = 157..257;
pub const MAGIC: std::ops::Range<usize> = 257..265;
const DEVICE: [std::ops::Range<usize>; 2] = [329..337, 337..345];
pub const PREFIX: std::ops::Range<usize> = 345..500;

pub const USTAR: &[u8; 8] = b"ustar\x0000";
pub const GNU: &[u8; 8] = b"ustar  \0";

/// The sum of all bytes, the checksum's own taken as spaces.
pub fn checksum(block: &Block) -> u64 {
    let all: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = block[CHECKSUM].iter().map(|byte| u64::from(*byte)).sum();
    all - own + 8 * u64::from(b' ')
}

/// Are both numbers of a device zero?
pub fn is_device_zero(block: &Block) -> bool {
    DEVICE.into_iter().all(|field| number(&block[field]) == Some(0))
}

/// A text up to its NUL or the field's end.
pub fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits between spaces and NULs, or GNU's big-endian bytes after 0x80. Nothing at all is zero.
pub fn number(field: &[u8]) -> Option<u64> {
    if field.first() == Some(&0x80) {
        let (high, low) = field[1..].split_at(field.len() - 1 - 8.min(field.len() - 1));
        let is_small = high.iter().all(|byte| *byte == 0);
        return is_small.then(|| low.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    }
    let start = field.iter().position(|byte| *byte != b' ').unwrap_or(field.len());
    let digits = field[start..].split(|byte| *byte == b' ' || *byte == 0).next().unwrap_or_default();
    let rest = &field[start + digits.len()..];
    if !rest.iter().all(|byte| *byte == b' ' || *byte == 0) {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Writes octal digits and a NUL, if they fit.
pub fn put_number(field: &mut [u8], value: u64) -> bool {
    let digits = format!("{value:0width$o}", width = field.len() - 1);
    if digits.len() >= field.len() {
        return false;
    }
    field[..digits.len()].copy_from_slice(digits.as_bytes());
    field[digits.len()] = 0;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_big_endian_and_nothing_else() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"77777777777\0"), Some(0o77777777777));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\0"), Some(0x2_0000_0000));
        assert_eq!(number(b"\x80\0\0\x01\0\0\0\0\0\0\0\0"), None);
        for bad in
            [b"0000x44\0".as_slice(), b"-000644\0", b"644\x00644\0", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"0000008\0"]
        {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }
}
