//! PID 1 of every sandbox: serves the link, starts commands, reaps everything.
//!
//! Start reading at `guest` (the loop), then `receiving` and `sending` (the link), `starting` and
//! `finishing` (a command's life). `crate::sys::monitor` is what stands between PID 1 and a command.

mod calls;
mod channel;
mod command;
mod control;
mod doors;
mod ending;
mod events;
mod failure;
mod finishing;
mod gateway;
mod guest;
mod input;
mod link;
mod name_callers;
mod output;
mod output_pipes;
mod process;
mod receiving;
mod sealing;
mod search;
mod sending;
mod socket;
mod sockets;
mod spares;
mod starting;
mod terminal;
mod tree;
mod usage;
mod workers;
mod world;

#[cfg(test)]
mod tests;

use std::{ffi::OsString, os::fd::OwnedFd, process::ExitCode};

use rustix::{
    io::{FdFlags, fcntl_setfd, ioctl_fionbio},
    net::sockopt,
    process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit},
};

use crate::{egress::listeners::Listeners, files, sys, wall};
use guest::{Guest, Hooks};

pub use world::DEFAULT_PATH;

/// Usage or environment (spec/link.md).
const EXIT_USAGE: u8 = 70;

/// `init --listen-fd N`: N is a listening Unix socket, inherited from outside. `init --listen PATH`: makes one, in a
/// directory of the host's that is covered before anything else runs.
pub fn main(args: &[OsString]) -> ExitCode {
    // Nothing inside outlives the process that waits for it outside; sealing asks for it again.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let hooks = Hooks { listen, prepare: wall::prepare, seal: wall::seal, serve: files::serve };
    let door = match args {
        [option, path] if option == "--listen" => wall::make_door(path.as_ref()).map_err(|error| error.to_string()),
        _ => inherited_door(args),
    };
    let code = match door {
        Ok(door) => {
            wall::warm_up();
            serve(door, hooks)
        }
        Err(message) => {
            eprintln!("caisson-guest init: {message}");
            EXIT_USAGE
        }
    };
    ExitCode::from(code)
}

fn listen() -> Listeners {
    Listeners::open(wall::catches_every_port())
}

fn inherited_door(args: &[OsString]) -> Result<OwnedFd, String> {
    let usage = "usage: init --listen-fd N | --listen PATH";
    let [option, number] = args else { return Err(usage.into()) };
    let number = number.to_str().and_then(|number| number.parse::<i32>().ok()).filter(|number| *number > 2);
    let (Some(number), true) = (number, option == "--listen-fd") else { return Err(usage.into()) };
    let door = sys::descriptors::borrow(number).ok_or(usage)?;
    match sockopt::socket_acceptconn(door) {
        // One of our own, so that nothing else can close it by its number.
        Ok(true) => rustix::io::fcntl_dupfd_cloexec(door, 3).map_err(|error| error.to_string()),
        Ok(false) => Err(format!("descriptor {number} is not a listening socket")),
        Err(error) => Err(format!("descriptor {number}: {error}")),
    }
}

/// Prepares this process to be PID 1 and serves until the end.
fn serve(door: OwnedFd, hooks: Hooks) -> u8 {
    sys::memory::keep_heap_small();
    sys::signals::reset_dispositions();
    let open_files = getrlimit(Resource::Nofile);
    // Each command needs a few descriptors; the usual soft limit is for programs that use select.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: open_files.maximum, ..open_files });
    let prepared = fcntl_setfd(&door, FdFlags::CLOEXEC).and_then(|()| ioctl_fionbio(&door, true));
    let guest = prepared.map_err(std::io::Error::from).and_then(|()| Guest::new(door, open_files, hooks));
    match guest {
        Ok(guest) => guest.run(),
        Err(error) => {
            eprintln!("caisson-guest init: {error}");
            EXIT_USAGE
        }
    }
}
