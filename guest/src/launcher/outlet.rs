//! Standard output and standard error, in the order in which pieces came, without ever getting stuck in a write:
//! signals must be heard while a reader dawdles. The streams are shared with other processes, so
//! their mode is left alone; writing no more than a pipe has said it takes does the same.

use std::{collections::VecDeque, io, os::fd::BorrowedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FileType,
    io::Errno,
    stdio,
};

/// A pipe that polls as writable takes this much without blocking.
const PIPE_BYTES: usize = 4096;

pub struct Outlet {
    queue: VecDeque<Piece>,
    stdout_blocks: Option<bool>,
    stderr_blocks: Option<bool>,
}

struct Piece {
    is_stderr: bool,
    bytes: Vec<u8>,
    written: usize,
}

impl Outlet {
    pub fn new() -> Self {
        Self { queue: VecDeque::new(), stdout_blocks: None, stderr_blocks: None }
    }

    pub fn push(&mut self, is_stderr: bool, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.queue.push_back(Piece { is_stderr, bytes, written: 0 });
        }
    }

    /// The stream that is waited for.
    pub fn waits_for(&self) -> Option<BorrowedFd<'static>> {
        self.queue.front().map(|piece| stream(piece.is_stderr))
    }

    /// Writes what can be written now.
    pub fn flush(&mut self) -> io::Result<()> {
        while let Some(piece) = self.queue.front_mut() {
            let fd = stream(piece.is_stderr);
            let blocks = if piece.is_stderr { &mut self.stderr_blocks } else { &mut self.stdout_blocks };
            let may_block = *blocks.get_or_insert_with(|| can_block(fd));
            let rest = &piece.bytes[piece.written..];
            let rest = if may_block { &rest[..rest.len().min(PIPE_BYTES)] } else { rest };
            if may_block && !is_writable(fd) {
                return Ok(());
            }
            match rustix::io::write(fd, rest) {
                Ok(written) => piece.written += written,
                Err(Errno::INTR) => {}
                // The stream was given to us in non-blocking mode.
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if piece.written == piece.bytes.len() {
                self.queue.pop_front();
            }
        }
        Ok(())
    }
}

fn stream(is_stderr: bool) -> BorrowedFd<'static> {
    if is_stderr { stdio::stderr() } else { stdio::stdout() }
}

/// A file is always taken whole; anything else may make its writer wait.
fn can_block(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile)
}

fn is_writable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error or a lost reader is found out by the write.
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
