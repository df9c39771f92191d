//! The caller's terminal: its size, and raw mode that is always undone.

use std::{
    io::IsTerminal,
    os::fd::{AsFd, BorrowedFd},
    sync::Mutex,
};

use rustix::{
    stdio,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use crate::{proto::terminal::Size, sys::signalfd::with_blocked};

/// How the terminal was before raw mode; set exactly while it is raw.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Puts the terminal of standard input into raw mode; one that is no terminal stays as it is.
pub fn make_raw() {
    let Ok(mut before) = BEFORE.lock() else { return };
    if before.is_some() {
        return;
    }
    let Ok(modes) = tcgetattr(stdio::stdin()) else { return };
    let mut raw = modes.clone();
    raw.make_raw();
    if set(&raw) {
        *before = Some(modes);
    }
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
