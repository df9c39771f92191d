//! Closing every descriptor that is not meant to live on, and entering the working directory.

use std::os::fd::RawFd;

use rustix::fs::{Mode, OFlags};

use super::step::{During, SealError, Step};
use crate::sys;

/// Closes everything but `keep`. Standard streams that are not kept become the sandbox's /dev/null, so
/// that nothing of the outside is left behind them.
pub fn close(keep: &[RawFd], workdir: &str) -> Result<(), SealError> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .during(Step::Descriptors, "/dev/null")?;
    for (number, stream) in ["standard input", "standard output", "standard error"].into_iter().enumerate() {
        if keep.contains(&(number as RawFd)) {
            continue;
        }
        let result = match number {
            0 => rustix::stdio::dup2_stdin(&null),
            1 => rustix::stdio::dup2_stdout(&null),
            _ => rustix::stdio::dup2_stderr(&null),
        };
        result.during(Step::Descriptors, stream)?;
    }
    drop(null);
    let mut kept: Vec<u32> = keep.iter().filter_map(|&number| u32::try_from(number).ok()).collect();
    kept.extend([0, 1, 2]);
    kept.sort_unstable();
    let mut next = 0;
    for number in kept {
        if number > next {
            sys::descriptors::close_range(next, number - 1).during(Step::Descriptors, "closing descriptors")?;
        }
        next = number + 1;
    }
    sys::descriptors::close_range(next, u32::MAX).during(Step::Descriptors, "closing descriptors")?;
    rustix::process::chdir(workdir).during(Step::Descriptors, workdir)
}
