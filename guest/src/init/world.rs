//! What the seal decided about every command: its user, its environment, its limits.

use std::{
    collections::{BTreeMap, HashSet},
    fs::File,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{self, Access, Mode, OFlags},
    io,
    process::Rlimit,
};

use super::search::{PassedOver, closed, never_there};
use crate::{proto::link, rules::NETWORK_PROXY_PORT};

pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What programs inside reach by themselves.
const NO_PROXY: &str = "localhost,127.0.0.1,::1,198.18.0.1";

/// Variables by name; the last value given wins.
pub type Environment = BTreeMap<String, String>;

pub struct World {
    pub environment: Environment,
    pub workdir: String,
    /// On open files: PID 1 raises its own; commands get what they would have had, unless the wall
    /// gives them less.
    pub open_files: Rlimit,
    /// The standard input of commands that have none.
    pub null: OwnedFd,
    /// Directories of the PATH in which nothing needs to be looked for; known once there was time to look.
    pub never_there: HashSet<String>,
    /// Directories of the PATH that have what they have.
    pub closed: HashSet<String>,
    /// The kernel is gVisor's: a call is dear, and after a fork this process fetches its memory anew, page by page.
    pub in_gvisor: bool,
    /// The name of the last program that was asked for, and where it need not be looked for again.
    pub last_name: String,
    pub passed_over: Option<PassedOver>,
    /// What `caisson-ctl info` reads.
    pub note: Option<File>,
    /// Devices of what was handed in from outside: not the sandbox's own space.
    pub foreign_devices: Vec<u64>,
}

impl World {
    /// `open_files`: the limit on open files that PID 1 itself was started with. `proxy`: there is one to be named.
    pub fn new(seal: &link::Seal, open_files: &Rlimit, proxy: bool) -> io::Result<Self> {
        let workdir = if seal.workdir.is_empty() { "/".into() } else { seal.workdir.clone() };
        Ok(Self {
            environment: environment(seal, proxy),
            workdir,
            open_files: *open_files,
            null: fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
            never_there: HashSet::new(),
            closed: HashSet::new(),
            last_name: String::new(),
            passed_over: None,
            note: None,
            in_gvisor: seal.surroundings() == link::Surroundings::Gvisor,
            foreign_devices: seal.mounts.iter().map(|mount| mount.device).collect(),
        })
    }

    /// Looks ahead for what is the same for all commands.
    pub fn look_around(&mut self) {
        let Some(path) = self.environment.get("PATH") else { return };
        if self.never_there.is_empty() {
            self.never_there = never_there(path);
        }
        if self.in_gvisor {
            if self.closed.is_empty() {
                self.closed = closed(path);
            }
            self.passed_over = PassedOver::look(&self.last_name, path, &self.never_there, &self.closed);
        }
    }

    /// Where a command starts: `cwd` may be relative to the working directory, or nothing.
    pub fn directory(&self, cwd: &str) -> String {
        match cwd {
            "" => self.workdir.clone(),
            path if path.starts_with('/') => path.into(),
            path => format!("{}/{path}", self.workdir.trim_end_matches('/')),
        }
    }
}

fn environment(seal: &link::Seal, proxy: bool) -> Environment {
    let user = if seal.user.is_empty() { "user" } else { &seal.user };
    let home = if seal.home.is_empty() { "/" } else { &seal.home };
    let bash = Path::new("/bin/bash");
    let shell = if fs::access(bash, Access::EXEC_OK).is_ok() { "/bin/bash" } else { "/bin/sh" };
    let base = [
        ("PATH", DEFAULT_PATH),
        ("HOME", home),
        ("USER", user),
        ("LOGNAME", user),
        ("SHELL", shell),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
    ];
    let mut environment: Environment = base.map(|(name, value)| (name.into(), value.into())).into();
    if proxy {
        // An HTTP proxy for everything: libraries that are told of SOCKS and lack it refuse to work at all.
        let address = format!("http://127.0.0.1:{NETWORK_PROXY_PORT}");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment.insert(name.into(), address.clone());
            environment.insert(name.to_ascii_lowercase(), address.clone());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            environment.insert(name.into(), NO_PROXY.into());
        }
    }
    for variable in &seal.env {
        add_variable(&mut environment, variable);
    }
    environment
}

/// Adds NAME=value. False when it is not one.
pub fn add_variable(environment: &mut Environment, variable: &str) -> bool {
    match variable.split_once('=') {
        Some((name, value)) if !name.is_empty() && !variable.contains('\0') => {
            environment.insert(name.into(), value.into());
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, getrlimit};

    use super::*;

    fn world(seal: &link::Seal) -> World {
        World::new(seal, &getrlimit(Resource::Nofile), false).unwrap()
    }

    #[test]
    fn the_environment_has_a_base_and_what_the_seal_adds() {
        let seal = link::Seal {
            user: "agent".into(),
            home: "/home/agent".into(),
            env: vec!["TZ=Europe/Berlin".into(), "A=b=c".into(), "broken".into(), "=x".into()],
            ..Default::default()
        };
        let environment = world(&seal).environment;
        assert_eq!(environment["HOME"], "/home/agent");
        assert_eq!(environment["LOGNAME"], "agent");
        assert_eq!(environment["TZ"], "Europe/Berlin");
        assert_eq!(environment["A"], "b=c");
        assert_eq!(environment.len(), 8);
    }

    #[test]
    fn directories_are_relative_to_the_working_directory() {
        let world = world(&link::Seal { workdir: "/work/".into(), ..Default::default() });
        assert_eq!(world.directory(""), "/work/");
        assert_eq!(world.directory("a/b"), "/work/a/b");
        assert_eq!(world.directory("/x"), "/x");
    }
}
