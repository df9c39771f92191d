//! The first process of a virtual machine: makes the machine's root, starts the guest in namespaces of its own inside
//! it, and answers the host's control port. It holds no command's data; the machine ends with it.
//!
//! Start reading at `machine` (the root), then `chamber` (the namespaces), then `control` (the host's words) and
//! `rehearsal`.

mod chamber;
mod control;
mod machine;
mod parking;
mod ports;
mod rehearsal;

use std::{io, path::Path, process::ExitCode};

use rustix::{
    fs::Mode,
    system::{RebootCommand, reboot},
};

use crate::{keeper::socket, sys::vsock};

/// Where the guest's door is, for this process alone.
const DOOR: &str = "/run/door";

/// Never returns to the kernel: a first process that ends is a panic.
pub fn main() -> ExitCode {
    let words = match run() {
        Ok(Some(code)) => format!("the guest ended with code {code}"),
        Ok(None) => "the machine boots".to_owned(),
        Err(error) => format!("the machine could not start: {error}"),
    };
    // The console is the host's log; how the guest ended is read from there.
    eprintln!("caisson: {words}");
    // Without acknowledgement by devices: the emulator ends at once.
    let _ = reboot(RebootCommand::Restart);
    ExitCode::FAILURE
}

/// The guest's exit code; none where there is to be no guest.
fn run() -> io::Result<Option<i32>> {
    let link = machine::make()?;
    rustix::fs::mkdir("/run", Mode::from_raw_mode(0o700)).or_else(machine::exists)?;
    let code = match link {
        machine::Link::None => return Ok(None),
        machine::Link::Ports => control::serve(chamber::start(socket::listening(Path::new(DOOR))?)?)?,
        machine::Link::Vsock(port) => {
            let control = vsock::listening(port + 1)?;
            control::serve_socket(chamber::start(vsock::listening(port)?)?, &control)?
        }
    };
    Ok(Some(code))
}
