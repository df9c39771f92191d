//! One small static binary, several roles; the name it is called by or its first argument says which.

mod build_id;
mod container;
mod ctl;
mod egress;
mod files;
mod frame;
mod image;
mod init;
mod keeper;
mod launcher;
mod proto;
#[path = "gen/rules.rs"]
#[allow(dead_code)]
mod rules;
mod sys;
mod vm;
mod wall;
mod workspace;

/// musl's own gives memory back to the kernel at every turn, which costs sealing a fifth of its time.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let mut args: Vec<OsString> = env::args_os().collect();
    let name = args.first().map(Path::new).and_then(Path::file_name);
    match name.and_then(|name| name.to_str()) {
        Some("caisson") => return launcher::main(&args[1..]),
        Some("caisson-ctl") => return ctl::main(&args[1..]),
        // What a kernel starts first.
        Some("init") if std::process::id() == 1 => return vm::main(),
        _ => {}
    }
    let role = if args.len() > 1 { args.remove(1) } else { OsString::new() };
    match role.to_str() {
        Some("init") => init::main(&args[1..]),
        Some("container") => container::main(&args[1..]),
        Some("keeper") => keeper::main(&args[1..]),
        Some("ctl") => ctl::main(&args[1..]),
        Some("launch") => launcher::main(&args[1..]),
        Some("workspace") => workspace::main(&args[1..]),
        Some("image") => image::main(),
        Some("build-id") => {
            println!("{}", build_id::BUILD_ID);
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: caisson-guest init|container|keeper|workspace|image|ctl|launch|build-id …");
            ExitCode::from(70)
        }
    }
}
