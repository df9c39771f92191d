//! A process's output that the daemon has not acknowledged: a ring of bytes, each piece with the
//! pipe it came from. Bytes go from the pipe into the ring and from the ring into the link without
//! another copy.

use std::{collections::VecDeque, io::IoSliceMut, os::fd::BorrowedFd};

use rustix::io::{Errno, readv};

use crate::{frame::Tag, rules::LINK_WINDOW_BYTES};

/// The first ring; it grows by eights up to the window when a process writes much.
const SMALL_RING: usize = 16 * 1024;
/// Most bytes to take from a pipe at once, so that several processes take turns.
pub const READ_BYTES: usize = 256 * 1024;
/// A process that writes single bytes to both pipes in turn must not make us remember each of them
/// for long: beyond so many pieces the ring counts as full.
const MAX_RUNS: usize = 4096;

/// Bytes up to `end`, from where the run before ends, came from one pipe.
struct Run {
    end: u64,
    tag: Tag,
}

/// Bytes that can go into one DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub tag: Tag,
    pub from: u64,
    pub to: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, at most as many as there was room for.
    Bytes(usize),
    /// Nothing there right now.
    Empty,
    /// No room until the daemon acknowledges.
    Full,
    /// Nothing will come any more.
    End,
}

#[derive(Default)]
pub struct Output {
    ring: Vec<u8>,
    /// Positions: acknowledged, put on the link, taken from the process.
    acknowledged: u64,
    sent: u64,
    end: u64,
    runs: VecDeque<Run>,
}

impl Output {
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn all_sent(&self) -> bool {
        self.sent == self.end
    }

    /// Whether `read` would take something for this tag.
    pub fn has_room(&self, tag: Tag) -> bool {
        self.held() < LINK_WINDOW_BYTES
            && (self.runs.len() < MAX_RUNS || self.runs.back().is_some_and(|run| run.tag == tag))
    }

    /// Whether there is room for more than a little: looking at a pipe again is not free.
    pub fn is_worth_reading(&self, tag: Tag) -> bool {
        self.has_room(tag) && self.held() <= LINK_WINDOW_BYTES - LINK_WINDOW_BYTES / 16
    }

    /// Takes what a pipe or terminal has.
    pub fn read(&mut self, fd: BorrowedFd<'_>, tag: Tag) -> Read {
        if !self.has_room(tag) {
            return Read::Full;
        }
        if self.ring.len() - self.held() < 4096 && self.ring.len() < LINK_WINDOW_BYTES {
            self.grow();
        }
        let room = (self.ring.len() - self.held()).min(READ_BYTES);
        let from = self.index(self.end);
        let (wrapped, straight) = self.ring.split_at_mut(from);
        let first = straight.len().min(room);
        let second = room - first;
        let mut slices = [IoSliceMut::new(&mut straight[..first]), IoSliceMut::new(&mut wrapped[..second])];
        let used = if second > 0 { 2 } else { 1 };
        match readv(fd, &mut slices[..used]) {
            // A terminal whose other side is closed gives EIO.
            Ok(0) | Err(Errno::IO) => Read::End,
            Ok(count) => {
                self.end += count as u64;
                match self.runs.back_mut() {
                    Some(run) if run.tag == tag => run.end = self.end,
                    _ => self.runs.push_back(Run { end: self.end, tag }),
                }
                Read::Bytes(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => Read::Empty,
            Err(_) => Read::End,
        }
    }

    /// The next bytes to send, all of one tag.
    pub fn next_piece(&self, limit: usize) -> Option<Piece> {
        let run = self.runs.get(self.runs.partition_point(|run| run.end <= self.sent))?;
        Some(Piece { tag: run.tag, from: self.sent, to: run.end.min(self.sent + limit as u64) })
    }

    /// Where the bytes of a piece, or of the rest of one, lie.
    pub fn slices(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        debug_assert!(self.acknowledged <= from && from <= to && to <= self.end);
        let length = (to - from) as usize;
        let start = if length == 0 { 0 } else { self.index(from) };
        let first = length.min(self.ring.len() - start);
        (&self.ring[start..start + first], &self.ring[..length - first])
    }

    /// Everything up to `position` is on the link.
    pub fn sent_up_to(&mut self, position: u64) {
        debug_assert!(self.sent <= position && position <= self.end);
        self.sent = position;
    }

    /// The daemon has everything up to `position` for good. False when that was never sent.
    pub fn acknowledge(&mut self, position: u64) -> bool {
        if position > self.sent {
            return false;
        }
        self.acknowledged = self.acknowledged.max(position);
        while self.runs.front().is_some_and(|run| run.end <= self.acknowledged) {
            self.runs.pop_front();
        }
        true
    }

    /// A new connection: the daemon has stored up to `position`; what lies after is sent again.
    /// False when that was never there.
    pub fn resume(&mut self, position: u64) -> bool {
        if position > self.end {
            return false;
        }
        self.sent = self.end;
        self.acknowledge(position);
        self.sent = self.acknowledged;
        true
    }

    /// Gives the memory back once nothing can come any more and all is acknowledged.
    pub fn release_if_done(&mut self) {
        if self.held() == 0 {
            self.ring = Vec::new();
        }
    }

    fn held(&self) -> usize {
        (self.end - self.acknowledged) as usize
    }

    fn index(&self, position: u64) -> usize {
        (position % self.ring.len() as u64) as usize
    }

    fn grow(&mut self) {
        let size = (self.ring.len() * 8).clamp(SMALL_RING, LINK_WINDOW_BYTES);
        let mut larger = Self { ring: vec![0; size], ..Self::default() };
        let (mut at, held) = (self.acknowledged, self.slices(self.acknowledged, self.end));
        for part in [held.0, held.1] {
            let mut part = part;
            while !part.is_empty() {
                let from = larger.index(at);
                let count = part.len().min(larger.ring.len() - from);
                larger.ring[from..from + count].copy_from_slice(&part[..count]);
                part = &part[count..];
                at += count as u64;
            }
        }
        self.ring = larger.ring;
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::{io::write, pipe};

    use super::*;

    fn bytes(output: &Output, piece: Piece) -> Vec<u8> {
        let (first, second) = output.slices(piece.from, piece.to);
        [first, second].concat()
    }

    #[test]
    fn pieces_keep_their_order_and_their_pipe() {
        let (reader, writer) = pipe::pipe().unwrap();
        let mut output = Output::default();
        for (text, tag) in [("one", Tag::Stdout), ("two", Tag::Stdout), ("three", Tag::Stderr)] {
            write(&writer, text.as_bytes()).unwrap();
            assert_eq!(output.read(reader.as_fd(), tag), Read::Bytes(text.len()));
        }
        let first = output.next_piece(100).unwrap();
        assert_eq!((first.tag, bytes(&output, first)), (Tag::Stdout, b"onetwo".to_vec()));
        output.sent_up_to(first.to);
        let second = output.next_piece(2).unwrap();
        assert_eq!((second.tag, bytes(&output, second)), (Tag::Stderr, b"th".to_vec()));
        assert!(!output.acknowledge(7), "not sent yet");
        assert!(output.acknowledge(4));
        assert!(output.resume(5));
        assert_eq!(bytes(&output, output.next_piece(100).unwrap()), b"o");
        assert!(!output.resume(12));
        drop(writer);
        assert_eq!(output.read(reader.as_fd(), Tag::Stdout), Read::End);
    }

    #[test]
    fn the_ring_holds_one_window_and_no_more() {
        let (reader, writer) = pipe::pipe().unwrap();
        let mut output = Output::default();
        let mut expected = 0u64;
        let mut check = 0u64;
        let mut chunk = vec![0; 60_000];
        for round in 0..200 {
            for byte in chunk.iter_mut() {
                *byte = (expected % 251) as u8;
                expected += 1;
            }
            write(&writer, &chunk).unwrap();
            let mut left = chunk.len();
            while left > 0 {
                match output.read(reader.as_fd(), Tag::Stdout) {
                    Read::Bytes(count) => left -= count,
                    Read::Full => {
                        assert_eq!(output.end() - output.acknowledged(), LINK_WINDOW_BYTES as u64);
                        let piece = output.next_piece(300_000 + round).unwrap();
                        for byte in bytes(&output, piece) {
                            assert_eq!(byte, (check % 251) as u8);
                            check += 1;
                        }
                        output.sent_up_to(piece.to);
                        assert!(output.acknowledge(piece.to));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(output.ring.len() <= LINK_WINDOW_BYTES);
    }

    #[test]
    fn single_bytes_in_turn_fill_the_ring_early() {
        let (reader, writer) = pipe::pipe().unwrap();
        let mut output = Output::default();
        for turn in 0..MAX_RUNS {
            write(&writer, b"x").unwrap();
            let tag = if turn % 2 == 0 { Tag::Stdout } else { Tag::Stderr };
            assert_eq!(output.read(reader.as_fd(), tag), Read::Bytes(1));
        }
        assert!(!output.has_room(Tag::Stdout));
        assert!(output.has_room(Tag::Stderr));
    }
}
