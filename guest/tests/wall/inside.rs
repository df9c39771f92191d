//! PID 1 of a sandbox under test: seals, runs one command, hands its exit code out.

use std::{
    io,
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Command, ExitCode},
    time::Instant,
};

use prost::Message;

use crate::{
    proto::link::Seal,
    sys::{self, seccomp::Instruction},
    wall,
};

/// `inside SEAL-IN-HEX REPORT NO-LANDLOCK FIRST-DESCRIPTOR -- command…`
pub fn main(arguments: &[String]) -> ExitCode {
    let bytes: Vec<u8> = (0..arguments[0].len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&arguments[0][at..at + 2], 16).expect("hexadecimal digits"))
        .collect();
    let seal = Seal::decode(bytes.as_slice()).expect("a Seal");
    let report = arguments[1] == "true";
    if arguments[2] == "true" {
        hide_landlock();
    }
    let first: i32 = arguments[3].parse().expect("a number");
    let descriptors = (first..first + seal.mounts.len() as i32)
        // SAFETY: the parent has left exactly these descriptors open for us.
        .map(|number| unsafe { OwnedFd::from_raw_fd(number) })
        .collect();

    let start = Instant::now();
    let holds = match wall::prepare(&seal).and_then(|prepared| wall::seal(&seal, prepared, descriptors, &[0, 1, 2])) {
        Ok(holds) => holds,
        Err(error) => {
            eprintln!("seal: step {}: {}", error.step, error.message);
            return ExitCode::from(error.step);
        }
    };
    let took = start.elapsed();
    if report {
        for hold in &holds {
            let state = if hold.enforced { "holds" } else { "LACKS" };
            eprintln!("{state} {} | {} | {}", hold.name, hold.by, hold.detail);
        }
        eprintln!("sealed in {} µs", took.as_micros());
    }
    run(&arguments[5..])
}

/// Makes the kernel look as if it had no Landlock.
fn hide_landlock() {
    let instruction = |code, jump_false, value| Instruction { code, jump_true: 0, jump_false, value };
    let filter = [
        instruction(0x20, 0, 0),
        instruction(0x15, 1, libc::SYS_landlock_create_ruleset as u32),
        instruction(0x06, 0, 0x0005_0000 | libc::ENOSYS as u32),
        instruction(0x06, 0, 0x7fff_0000),
    ];
    sys::seccomp::attach(&filter).expect("a filter");
}

fn run(command: &[String]) -> ExitCode {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).env_clear();
    child.envs([
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/home/dev"),
        ("LANG", "C.UTF-8"),
    ]);
    // SAFETY: confine_command is made for this place: it allocates nothing and takes no lock.
    unsafe { child.pre_exec(|| wall::confine_command().map_err(io::Error::from_raw_os_error)) };
    match wall::expendable(|| child.status()) {
        Ok(status) => ExitCode::from(status.code().unwrap_or(128 + status.signal().unwrap_or(0)) as u8),
        Err(error) => {
            eprintln!("{}: {error}", command[0]);
            ExitCode::from(127)
        }
    }
}
