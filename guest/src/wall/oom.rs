//! Who goes first when memory runs out: commands, before the guest that has to report it.

use std::{
    fs::{File, OpenOptions},
    io::{Seek, Write},
    os::fd::{AsRawFd, RawFd},
    sync::OnceLock,
};

struct Score {
    file: File,
    own: String,
}

static SCORE: OnceLock<Score> = OnceLock::new();

const EXPENDABLE: &str = "500";

/// Opens PID 1's own score while it may: once it is not dumpable the file belongs to the host's root.
pub fn prepare() -> Option<RawFd> {
    let path = "/proc/self/oom_score_adj";
    let own = std::fs::read_to_string(path).ok()?.trim().to_owned();
    let file = OpenOptions::new().write(true).open(path).ok()?;
    let number = file.as_raw_fd();
    SCORE.set(Score { file, own }).ok()?;
    Some(number)
}

/// Runs `fork` such that the child is among the first to go when memory runs out.
pub fn expendable<T>(fork: impl FnOnce() -> T) -> T {
    set(EXPENDABLE);
    let result = fork();
    if let Some(score) = SCORE.get() {
        set(&score.own);
    }
    result
}

/// A score that cannot be set changes who is killed first, not whether the wall holds.
fn set(value: &str) {
    if let Some(score) = SCORE.get() {
        let mut file = &score.file;
        let _ = file.rewind().and_then(|()| file.write_all(value.as_bytes()));
    }
}
