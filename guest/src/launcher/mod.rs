//! The `caisson` that people and hooks call. It hands a command line, its directory, its terminal, its
//! input and its signals to the daemon and prints what comes back; all judgement is in the daemon.
//!
//! Read `relay` for the conversation, `daemon` for finding and starting the other side.

mod answers;
mod command;
mod daemon;
mod home;
mod idle;
mod open;
mod outlet;
mod relay;
mod socket;
mod terminal;
mod trouble;
mod ttrpc;
mod upkeep;

use std::{ffi::OsString, process::ExitCode};

use relay::Outcome;
use trouble::Trouble;

/// What a launcher that could not do its work exits with, as with other runners of commands.
const EXIT_TROUBLE: u8 = 125;

pub fn main(args: &[OsString]) -> ExitCode {
    let result = serve(args);
    ExitCode::from(result.unwrap_or_else(|trouble| {
        terminal::restore();
        trouble.print();
        EXIT_TROUBLE
    }))
}

fn serve(args: &[OsString]) -> Result<u8, Trouble> {
    if let Some(code) = upkeep::renew(args)? {
        return Ok(code);
    }
    if std::env::var_os("CAISSON_URL").is_some_and(|url| !url.is_empty()) {
        return command::run_cli_here(args);
    }
    call(args)
}

/// Runs one command line in the daemon, which may turn out to be of another build once.
fn call(args: &[OsString]) -> Result<u8, Trouble> {
    let home = home::find()?;
    if let Some(code) = idle::answer(args, &home)? {
        return Ok(code);
    }
    let mut restarted = false;
    loop {
        let connection = daemon::reach(&home)?;
        let peer = connection.peer;
        match relay::relay(connection.stream, open::open(args)?, &home)? {
            Outcome::Exit(code) => return Ok(code),
            Outcome::Restart if restarted => {
                return Err(Trouble::new(
                    "the daemon that was just started is of another build than this launcher",
                    "Check CAISSON_ROOT and CAISSON_DAEMON_COMMAND, then run `caisson daemon restart`.",
                ));
            }
            Outcome::Restart => {
                daemon::wait_until_gone(&home, peer)?;
                restarted = true;
            }
        }
    }
}
