//! What the daemon is told about a call before anything else.

use std::{
    collections::HashMap,
    env,
    ffi::{OsStr, OsString},
    os::fd::AsFd,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use prost::Message;
use rustix::{
    fs::{FileType, fstat, major, minor},
    stdio,
};

use super::{
    command,
    terminal::{self, is_terminal},
    trouble::Trouble,
    ttrpc::MESSAGE_BYTES,
};
use crate::{build_id::BUILD_ID, proto::terminal::Open};

pub fn open(args: &[OsString]) -> Result<Open, Trouble> {
    let open = Open {
        args: args.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
        // Empty when the directory was removed under us: what needs no directory still works.
        cwd: env::current_dir().map(|cwd| cwd.into_os_string().into_vec()).unwrap_or_default(),
        env: environment(env::vars_os()),
        stdin_is_terminal: is_terminal(stdio::stdin()),
        stdout_is_terminal: is_terminal(stdio::stdout()),
        stderr_is_terminal: is_terminal(stdio::stderr()),
        size: terminal::size(),
        build: BUILD_ID.into(),
        stdin_is_empty: is_empty(stdio::stdin()),
        root: command::daemon_root().map(|root| root.into_os_string().into_vec()).unwrap_or_default(),
    };
    // The oneof around it adds a few bytes.
    if open.encoded_len() + 64 > MESSAGE_BYTES {
        return Err(Trouble::new("the command line is longer than 4 MiB", "Pass long data by file or standard input."));
    }
    Ok(open)
}

/// Nothing will ever come from /dev/null or a closed descriptor.
fn is_empty(stream: impl AsFd) -> bool {
    const NULL: (u32, u32) = (1, 3);
    fstat(stream).map_or(true, |stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
            && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL
    })
}

fn environment(vars: impl Iterator<Item = (OsString, OsString)>) -> HashMap<String, Vec<u8>> {
    vars.filter(|(name, _)| matters(name))
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_vec())))
        .collect()
}

/// The few variables that every call is told; others only when asked for by name.
fn matters(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"CAISSON_")
        || [b"TERM".as_slice(), b"NO_COLOR", b"LANG", b"COLUMNS", b"HOME", b"PATH", b"TRACEPARENT"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_null_device_is_empty() {
        assert!(is_empty(std::fs::File::open("/dev/null").unwrap()));
        assert!(!is_empty(std::fs::File::open("/dev/zero").unwrap()));
        assert!(!is_empty(std::fs::File::open("/proc/self/comm").unwrap()));
    }

    #[test]
    fn only_the_listed_variables_are_sent_unasked() {
        let vars = [("TERM", "xterm"), ("AWS_SECRET_ACCESS_KEY", "x"), ("CAISSON_SESSION", "s"), ("TERMCAP", "x")];
        let sent = environment(vars.into_iter().map(|(name, value)| (name.into(), value.into())));
        let mut names: Vec<_> = sent.into_keys().collect();
        names.sort();
        assert_eq!(names, ["CAISSON_SESSION", "TERM"]);
    }
}
