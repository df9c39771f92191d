//! The first process of a virtual machine: makes the machine's root, starts the guest in namespaces of its own inside
//! it, and answers the host's control port. It holds no command's data; the machine ends with it.
//!
//! Start reading at `machine` (the root), then `chamber` (the namespaces), then `control` (the host's words).

mod chamber;
mod control;
mod machine;
mod ports;

use std::{io, path::Path, process::ExitCode};

use rustix::{
    fs::Mode,
    system::{RebootCommand, reboot},
};

use crate::keeper::socket;

/// Where the guest's door is, for this process alone.
const DOOR: &str = "/run/door";

/// Never returns to the kernel: a first process that ends is a panic.
pub fn main() -> ExitCode {
    let words = match run() {
        Ok(code) => format!("the guest ended with code {code}"),
        Err(error) => format!("the machine could not start: {error}"),
    };
    // The console is the host's log; how the guest ended is read from there.
    eprintln!("caisson: {words}");
    // Without acknowledgement by devices: the emulator ends at once.
    let _ = reboot(RebootCommand::Restart);
    ExitCode::FAILURE
}

fn run() -> io::Result<i32> {
    let link = machine::make()?;
    rustix::fs::mkdir("/run", Mode::from_raw_mode(0o700)).or_else(machine::exists)?;
    let door = match link {
        machine::Link::Ports => socket::listening(Path::new(DOOR))?,
        machine::Link::Vsock(port) => ports::vsock_listener(port)?,
    };
    let guest = chamber::start(door)?;
    control::serve(guest, link)
}
