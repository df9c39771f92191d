//! The two questions that must not start a daemon just to answer them.

use std::{ffi::OsString, io::Write};

use super::{home::Home, socket, trouble::Trouble};

/// Answers `daemon status` and `daemon stop` when no daemon runs; `None` for everything else.
pub fn answer(args: &[OsString], home: &Home) -> Result<Option<u8>, Trouble> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let (text, code) = match words.as_slice() {
        ["daemon", "status"] => ("the daemon is not running\n", 1),
        ["daemon", "status", "--json"] => ("{\"ready\":false}\n", 1),
        ["daemon", "stop"] => ("the daemon is not running\n", 0),
        ["daemon", "stop", "--json"] => ("{\"stopping\":null}\n", 0),
        _ => return Ok(None),
    };
    if words.len() != args.len() || socket::connect(home)?.is_some() {
        return Ok(None);
    }
    // Nobody may be reading.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(Some(code))
}
