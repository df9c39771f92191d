//! A checkout whose sources are newer than what was made of them is made ready again before anything else.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use rustix::fs::{Access, access};

use super::{EXIT_TROUBLE, command, trouble::Trouble};

/// Set for the launcher that follows: a clock that runs ahead must not make it try again and again.
const TRIED: &str = "CAISSON_SET_UP";

/// Sets up what is stale and goes on as the launcher that comes of it; an exit code says that this failed. Does nothing for an
/// installation that is no checkout.
pub fn renew(args: &[OsString]) -> Result<Option<u8>, Trouble> {
    let root = command::root()?;
    let script = root.join("scripts/bootstrap.sh");
    // Whoever may not write there is not the one to set it up.
    let is_ours = || script.exists() && access(root.join(".caisson"), Access::WRITE_OK).is_ok();
    if env::var_os(TRIED).is_some() || !is_stale(&root) || !is_ours() {
        return Ok(None);
    }
    let status = Command::new("sh").arg(&script).status().map_err(|error| cannot_run(&script, &error))?;
    if !status.success() {
        return Ok(Some(EXIT_TROUBLE));
    }
    let launcher = root.join(".caisson/bin/caisson");
    let error = Command::new(&launcher).args(args).env(TRIED, "1").exec();
    Err(cannot_run(&launcher, &error))
}

fn is_stale(root: &Path) -> bool {
    let Some(made) = modified(&root.join(".caisson/stamp")) else { return true };
    let sources = [root.join("package-lock.json"), root.join("guest/src"), index(root)];
    sources.iter().filter_map(|path| modified(path)).any(|changed| changed > made)
}

/// Git writes it with every checkout, pull and commit. A worktree's `.git` says where it is.
fn index(root: &Path) -> PathBuf {
    let git = root.join(".git");
    match fs::read_to_string(&git) {
        Ok(text) => root.join(text.trim().strip_prefix("gitdir: ").unwrap_or_default()).join("index"),
        Err(_) => git.join("index"),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

fn cannot_run(path: &Path, error: &io::Error) -> Trouble {
    Trouble::new(
        format!("cannot run {}: {error}", path.display()),
        "Run ./caisson once in the project's root, or set CAISSON_ROOT.",
    )
}
