//! The caller's terminal: its size, and raw mode that is always undone.

use std::{
    io::IsTerminal,
    os::fd::{AsFd, BorrowedFd},
    sync::Mutex,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::read,
    stdio,
    termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use crate::{proto::terminal::Size, sys::signalfd::with_blocked};

/// More than the kernel keeps of what is typed ahead.
const MAX_AHEAD_BYTES: usize = 64 * 1024;

/// How the terminal was before raw mode; set exactly while it is raw.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Puts the terminal of standard input into raw mode; one that is no terminal stays as it is. Returns what was typed ahead, as
/// the keys that were pressed.
pub fn make_raw() -> Vec<u8> {
    let Ok(mut before) = BEFORE.lock() else { return Vec::new() };
    if before.is_some() {
        return Vec::new();
    }
    let Ok(modes) = tcgetattr(stdio::stdin()) else { return Vec::new() };
    let ahead = typed_ahead(&modes);
    let mut raw = modes.clone();
    raw.make_raw();
    if set(&raw) {
        *before = Some(modes);
    }
    ahead
}

/// Whole lines that wait to be read. They are taken before raw mode, because there the kernel gives a NUL for an end of input
/// that was typed before. What is typed of a line that has no end yet, raw mode gives as it is.
fn typed_ahead(modes: &Termios) -> Vec<u8> {
    let mut ahead = Vec::new();
    if !modes.local_modes.contains(LocalModes::ICANON) {
        return ahead;
    }
    let mut line = [0; 4096];
    while ahead.len() < MAX_AHEAD_BYTES && is_readable() {
        match read(stdio::stdin(), &mut line) {
            Ok(0) => ahead.push(modes.special_codes[SpecialCodeIndex::VEOF]),
            Ok(length) => ahead.extend_from_slice(&line[..length]),
            Err(_) => break,
        }
    }
    if modes.input_modes.contains(InputModes::ICRNL) {
        for byte in ahead.iter_mut().filter(|byte| **byte == b'\n') {
            *byte = b'\r';
        }
    }
    ahead
}

fn is_readable() -> bool {
    let mut fds = [PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0) && fds[0].revents() == PollFlags::IN
}

/// Puts it back, also from the background or while the program breaks down.
pub fn restore() {
    let Ok(mut before) = BEFORE.try_lock() else { return };
    if let Some(modes) = before.take() {
        set(&modes);
    }
}

/// After a stop and continue the shell has set its own mode.
pub fn after_continue() {
    let Ok(before) = BEFORE.lock() else { return };
    if let Some(modes) = before.as_ref() {
        let mut raw = modes.clone();
        raw.make_raw();
        set(&raw);
    }
}

/// Restores the terminal even if the launcher itself is at fault.
pub fn restore_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        restore();
        print(info);
    }));
}

/// The size of the first standard stream that is a terminal.
pub fn size() -> Option<Size> {
    let streams: [BorrowedFd<'static>; 3] = [stdio::stdout(), stdio::stdin(), stdio::stderr()];
    let window = streams.iter().find_map(|stream| tcgetwinsize(stream).ok())?;
    Some(Size { columns: window.ws_col.into(), rows: window.ws_row.into() })
}

pub fn is_terminal(stream: impl AsFd) -> bool {
    stream.as_fd().is_terminal()
}

fn set(modes: &Termios) -> bool {
    with_blocked(libc::SIGTTOU, || tcsetattr(stdio::stdin(), OptionalActions::Drain, modes).is_ok())
}
