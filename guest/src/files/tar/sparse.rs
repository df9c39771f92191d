//! Files with holes, in the four forms that GNU tar writes them: a map of where the data lies stands in the header, in an
//! extended header, or before the data.

use super::{
    header::{self, Block},
    pax::decimal,
};

/// More pieces than this are no file that anybody would miss.
const MAX_PIECES: usize = 65_536;
/// What a map before the data may take.
const MAX_MAP_BYTES: usize = 256 << 10;

const MALFORMED: &str = "a sparse member's map is malformed";

/// Where the pieces of data are in the file, in order.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Map {
    pieces: Vec<Piece>,
    /// The size of the file, holes included.
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    offset: u64,
    length: u64,
}

impl Map {
    pub fn new(size: u64) -> Self {
        Self { pieces: Vec::new(), size }
    }

    /// Pieces come in order and do not overlap; the last one ends with the file at the latest.
    pub fn push(&mut self, offset: u64, length: u64) -> Result<(), &'static str> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size).ok_or(MALFORMED)?;
        let before = self.pieces.last().map_or(0, |piece| piece.offset + piece.length);
        if offset < before || end < before || self.pieces.len() >= MAX_PIECES {
            return Err(MALFORMED);
        }
        self.pieces.push(Piece { offset, length });
        Ok(())
    }

    /// What is stored must be exactly the pieces.
    pub fn check(&self, stored: u64) -> Result<(), &'static str> {
        let data: u64 = self.pieces.iter().map(|piece| piece.length).sum();
        if data == stored { Ok(()) } else { Err(MALFORMED) }
    }

    /// `OFFSET,LENGTH,OFFSET,LENGTH…`
    pub fn push_list(&mut self, list: &[u8]) -> Result<(), &'static str> {
        let mut numbers = list.split(|byte| *byte == b',').map(decimal);
        while let Some(offset) = numbers.next() {
            let (Some(offset), Some(Some(length))) = (offset, numbers.next()) else { return Err(MALFORMED) };
            self.push(offset, length)?;
        }
        Ok(())
    }

    /// Entries of a header of GNU's own form or of a block that follows it; true if another one follows.
    pub fn push_entries(&mut self, block: &Block, at: Entries) -> Result<bool, &'static str> {
        for entry in block[at.entries].chunks_exact(24) {
            // The list ends early with nothing at all.
            if header::text(entry).is_empty() && entry[0] != 0x80 {
                break;
            }
            let (offset, length) = (header::number(&entry[..12]), header::number(&entry[12..]));
            self.push(offset.ok_or(MALFORMED)?, length.ok_or(MALFORMED)?)?;
        }
        Ok(block[at.continues] != 0)
    }

    /// A map that stands before the data: the count of pieces, then each one's offset and length, a line for each number,
    /// in whole blocks. `None`: more of it is to come.
    pub fn push_lines(&mut self, bytes: &[u8]) -> Result<Option<()>, &'static str> {
        if bytes.len() > MAX_MAP_BYTES {
            return Err("a sparse member's map is too long");
        }
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n"));
        let mut next = || match lines.next() {
            Some(Some(digits)) if digits.len() <= 20 => decimal(digits).map(Some).ok_or(MALFORMED),
            // Only the last line can lack its end.
            Some(Some(_)) => Err(MALFORMED),
            Some(None) | None => Ok(None),
        };
        let Some(count) = next()? else { return Ok(None) };
        let mut pieces = Vec::new();
        for _ in 0..count {
            let (Some(offset), Some(length)) = (next()?, next()?) else { return Ok(None) };
            pieces.push((offset, length));
        }
        for (offset, length) in pieces {
            self.push(offset, length)?;
        }
        Ok(Some(()))
    }
}

/// Where a block has its entries, and whether more follow.
pub struct Entries {
    entries: std::ops::Range<usize>,
    continues: usize,
}

pub const IN_HEADER: Entries = Entries { entries: 386..482, continues: 482 };
pub const IN_BLOCK: Entries = Entries { entries: 0..504, continues: 504 };
/// Of a header of GNU's own form: the size of the file.
pub const REAL_SIZE: std::ops::Range<usize> = 483..495;

/// What comes next of a file that is being filled.
#[derive(Debug, PartialEq)]
pub enum Next {
    Hole(u64),
    /// At most so much data without a hole.
    Data(u64),
}

/// Walks through a map while the data comes.
#[derive(Debug, Default)]
pub struct Walk {
    pieces: std::vec::IntoIter<Piece>,
    current: Option<Piece>,
    size: u64,
    position: u64,
}

impl Walk {
    pub fn new(map: Map) -> Self {
        let mut pieces = map.pieces.into_iter();
        Self { current: pieces.next(), pieces, size: map.size, position: 0 }
    }

    /// `None` at the file's end.
    pub fn next(&mut self) -> Option<Next> {
        loop {
            let Some(piece) = self.current else {
                let rest = self.size - self.position;
                self.position = self.size;
                return (rest > 0).then_some(Next::Hole(rest));
            };
            if piece.offset > self.position {
                let hole = piece.offset - self.position;
                self.position = piece.offset;
                return Some(Next::Hole(hole));
            }
            let left = piece.offset + piece.length - self.position;
            if left > 0 {
                return Some(Next::Data(left));
            }
            self.current = self.pieces.next();
        }
    }

    /// So much of the data has come.
    pub fn advance(&mut self, bytes: u64) {
        self.position += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order_and_stay_inside() {
        let mut map = Map::new(100);
        map.push(0, 10).unwrap();
        map.push(10, 0).unwrap();
        map.push(50, 50).unwrap();
        assert!(map.check(60).is_ok() && map.check(61).is_err());
        for (offset, length) in [(99, 1), (0, 1), (100, 1), (u64::MAX, 2)] {
            assert!(map.push(offset, length).is_err(), "{offset} {length}");
        }
    }

    #[test]
    fn a_walk_gives_holes_and_data_in_turn() {
        let mut map = Map::new(100);
        map.push_list(b"10,5,20,5,100,0").unwrap();
        let mut walk = Walk::new(map);
        let mut seen = Vec::new();
        while let Some(next) = walk.next() {
            if let Next::Data(left) = next {
                walk.advance(left);
            }
            seen.push(next);
        }
        assert_eq!(seen, [Next::Hole(10), Next::Data(5), Next::Hole(5), Next::Data(5), Next::Hole(75)]);
    }

    #[test]
    fn lists_that_lie_are_refused() {
        for bad in ["1", "1,2,3", "1,x", "5,5,1,1", "", "1,2,", "-1,2", "0,101"] {
            assert!(Map::new(100).push_list(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for bad in ["x\n", "1\n5\nx\n", "1\n\n1\n", "1\n0\n101\n", "99999999999999999999999\n"] {
            assert!(Map::new(100).push_lines(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for short in ["", "2", "2\n", "2\n1\n1\n", "2\n1\n1\n5"] {
            assert_eq!(Map::new(100).push_lines(short.as_bytes()), Ok(None), "{short:?}");
        }
        assert_eq!(Map::new(100).push_lines(b"1\n1\n9\n\0\0"), Ok(Some(())));
    }
}
