//! One Landlock domain for the sandbox, inherited by every command: everything may be read and run, and
//! only what is meant to be written may be written. A second fence behind the mounts.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::{self, Errno},
};

use super::{
    mounts::Layout,
    place,
    plan::Plan,
    report::Report,
    step::{During, SealError, Step},
};
use crate::sys::landlock::{abi, allow_beneath, create_ruleset, restrict_self};

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM
const REMOVE_AND_MAKE: u64 = 0b1_1111_1111 << 4;
/// Since ABI 2; without it a rename into another directory is refused.
const REFER: u64 = 1 << 13;
/// Since ABI 3.
const TRUNCATE: u64 = 1 << 14;
/// Since ABI 5.
const IOCTL_DEV: u64 = 1 << 15;
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const READ: u64 = EXECUTE | READ_FILE | READ_DIR;

/// Since ABI 7: refusals are not written to the host's audit log, which a sandbox could flood.
const LOG_SAME_EXEC_OFF: u32 = 1 << 0;

/// Devices that a program may write to and ask about, where they exist.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

pub fn restrict(plan: &Plan<'_>, layout: &Layout, report: &mut Report) -> Result<(), SealError> {
    let abi = abi();
    let asked = !plan.seal.allow_write.is_empty();
    if abi == 0 {
        report.lacks("landlock", "kernel", "the kernel has no Landlock, or it is switched off");
        if asked {
            report.lacks("paths.allow_write", "Landlock", "the kernel has no Landlock");
        }
        return Ok(());
    }
    let handled = handled(abi);
    let ruleset = create_ruleset(handled).during(Step::Landlock, "a ruleset")?;
    let rules = rules(plan, layout);
    let mut absent = Vec::new();
    for (path, access, must_exist) in rules {
        match allow(&ruleset, path, access & handled) {
            Ok(()) => {}
            // A link is no place: what it leads to may have been chosen inside an earlier sandbox.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !must_exist => absent.push(path),
            Err(errno) => return Err(Step::Landlock.error(format!("{path}: {errno}"))),
        }
    }
    let flags = if abi >= 7 { LOG_SAME_EXEC_OFF } else { 0 };
    restrict_self(&ruleset, flags).during(Step::Landlock, "entering the domain")?;
    let by = format!("Landlock ABI {abi}");
    report.holds("landlock", &by, "writing only where it is meant to be");
    if asked {
        absent.retain(|path| plan.seal.allow_write.iter().any(|asked| asked == path));
        let detail = match absent.is_empty() {
            true => String::new(),
            false => format!("no file or directory was at {}", absent.join(", ")),
        };
        report.holds("paths.allow_write", &by, detail);
    }
    Ok(())
}

/// Each path with what is allowed beneath it, and whether it must exist.
fn rules<'a>(plan: &'a Plan<'_>, layout: &'a Layout) -> Vec<(&'a str, u64, bool)> {
    let write = READ | WRITE_FILE | REMOVE_AND_MAKE | REFER | TRUNCATE;
    let device = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV;
    let mut rules = vec![("/", READ, true)];
    // Nothing in /proc is written, least of all PID 1's: its files there belong to the sandbox's user.
    // Debuggers write memory through it, and user namespaces get their maps there.
    if plan.groups.debug || plan.groups.nested {
        rules.push(("/proc", WRITE_FILE, true));
    }
    rules.extend(DEVICES.map(|path| (path, device, false)));
    if plan.seal.allow_write.is_empty() {
        rules.extend(layout.writable.iter().map(|path| (path.as_str(), write, true)));
    } else {
        rules.extend(plan.seal.allow_write.iter().map(|path| (path.as_str(), write, false)));
    }
    rules
}

fn handled(abi: u32) -> u64 {
    let mut handled = EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | REMOVE_AND_MAKE;
    for (since, access) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)] {
        if abi >= since {
            handled |= access;
        }
    }
    handled
}

fn allow(ruleset: &OwnedFd, path: &str, access: u64) -> io::Result<()> {
    let opened = match DEVICES.contains(&path) {
        // /dev/ptmx is a link of the sandbox's own.
        true => rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
        false => place::existing(path)?,
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    let access = if kind.is_dir() { access } else { access & OF_FILES };
    allow_beneath(ruleset, &opened, access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_abi_handles_what_it_knows() {
        assert_eq!(handled(1), (1 << 13) - 1);
        assert_eq!(handled(2), (1 << 14) - 1);
        assert_eq!(handled(4), (1 << 15) - 1);
        assert_eq!(handled(7), (1 << 16) - 1);
    }
}
