//! Seals real sandboxes and looks at them from inside.
//!
//! Without arguments it runs its cases, as whoever calls it. `run [options] -- command…` seals one sandbox
//! and runs one command in it, for trying things by hand and for the probes in test/security/wall.

mod cases;
mod inside;
mod options;
mod outside;

#[path = "../../src/proto.rs"]
mod proto;
#[path = "../../src/gen/rules.rs"]
#[allow(dead_code)]
mod rules;
#[path = "../../src/sys/mod.rs"]
#[allow(dead_code)]
mod sys;
#[path = "../../src/wall/mod.rs"]
// Its unit tests are compiled here too and run elsewhere.
#[allow(dead_code, unused_imports)]
mod wall;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let code = match arguments.first().map(String::as_str) {
        Some("inside") => return inside::main(&arguments[1..]),
        Some("run") => outside::run(&options::parse(&arguments[1..])),
        _ => cases::main(&arguments),
    };
    outside::clean_up();
    code
}
