//! The keeper: what the daemon cannot do on the host itself (proto/caisson/keeper/v1). It holds no
//! state that matters; when its standard input ends, so does it, and the sandboxes live on.

mod attach;
mod events;
mod failure;
mod groups;
mod handed;
mod identify;
mod launch;
mod machine_memory;
mod monitor;
mod mounts;
mod pages;
pub mod privilege;
mod process;
mod reach;
mod serve;
pub mod socket;
mod sources;
mod tree;
mod watch;
mod wire;
mod worker;

use std::{ffi::OsString, process::ExitCode};

pub fn main(args: &[OsString]) -> ExitCode {
    if !args.is_empty() {
        eprintln!("usage: caisson-guest keeper");
        return ExitCode::from(70);
    }
    match serve::Keeper::new().and_then(|mut keeper| keeper.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errno) => {
            eprintln!("caisson keeper: {}", std::io::Error::from(errno));
            ExitCode::FAILURE
        }
    }
}
