//! `caisson-ctl`: what an agent or a hook inside a sandbox can ask about it.

mod info;
mod json;
pub mod note;

use std::{ffi::OsString, process::ExitCode};

const USAGE: &str = "usage: caisson-ctl info [--json]\n";

pub fn main(args: &[OsString]) -> ExitCode {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    match args.iter().map(AsRef::as_ref).collect::<Vec<_>>().as_slice() {
        ["info"] => info::print(false),
        ["info", "--json"] => info::print(true),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
