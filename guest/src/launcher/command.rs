//! Which programs stand behind the launcher: the daemon's and, for a daemon elsewhere, the CLI's own.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::trouble::Trouble;

/// The command that runs the daemon in the foreground.
pub fn daemon_command() -> Result<Command, Trouble> {
    if let Some(words) = env::var("CAISSON_DAEMON_COMMAND").ok().filter(|words| !words.trim().is_empty()) {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        return Ok(command);
    }
    // Thousands of streams fill more of young memory than they keep: collected sooner, the daemon stays small.
    node_with(&["--max-semi-space-size=8"], "packages/daemon/src/main.ts")
}

/// Where a daemon would be started from, unless another command is to be it.
pub fn daemon_root() -> Option<PathBuf> {
    let other = env::var_os("CAISSON_DAEMON_COMMAND").is_some_and(|words| !words.is_empty());
    if other { None } else { root().ok() }
}

/// Replaces this process by the CLI in a Node of its own. Returns only if that fails.
pub fn run_cli_here(args: &[OsString]) -> Result<u8, Trouble> {
    let mut command = node_with(&[], "packages/cli/src/main.ts")?;
    let error = command.args(args).exec();
    Err(Trouble::new(
        format!("cannot start {}: {error}", command.get_program().to_string_lossy()),
        "Check CAISSON_NODE and CAISSON_ROOT.",
    ))
}

/// Node on one of the installation's entry points.
fn node_with(flags: &[&str], entry: &str) -> Result<Command, Trouble> {
    let root = root()?;
    let node = env::var_os("CAISSON_NODE")
        .filter(|node| !node.is_empty())
        .map_or_else(|| root.join("node_modules/.bin/node"), PathBuf::from);
    let entry = root.join(entry);
    for path in [&node, &entry] {
        // A bare program name is looked up in PATH when it is started.
        let is_name = path.components().count() == 1;
        if !is_name && !path.exists() {
            return Err(Trouble::new(
                format!("this installation is not complete: {} is missing", path.display()),
                "Run ./caisson once in the project's root, or set CAISSON_ROOT and CAISSON_NODE.",
            ));
        }
    }
    let mut command = Command::new(node);
    command.arg("--disable-warning=ExperimentalWarning").args(flags).arg(entry);
    Ok(command)
}

/// The installation's root: the launcher lives at ROOT/.caisson/bin/caisson.
pub fn root() -> Result<PathBuf, Trouble> {
    if let Some(root) = env::var_os("CAISSON_ROOT").filter(|root| !root.is_empty()) {
        return std::path::absolute(root)
            .map_err(|error| Trouble::new(format!("CAISSON_ROOT: {error}"), "Make it an absolute path."));
    }
    let exe = env::current_exe().map_err(|error| {
        Trouble::new(format!("cannot tell where this launcher is installed: {error}"), "Set CAISSON_ROOT.")
    })?;
    Ok(exe.ancestors().nth(3).unwrap_or(Path::new("/")).to_path_buf())
}
