//! From a `Start` message to something that can be executed, and from a failed attempt to a reason.

use std::{ffi::CString, os::unix::ffi::OsStrExt, path::Path};

use rustix::io::Errno;

use super::{
    failure::{because, failure},
    world::{World, add_variable},
};
use crate::{
    proto::link::{Failure, Start},
    rules::PATH_MAX_BYTES,
    sys::{
        plan::{Parts, Plan},
        report::Step,
    },
};

pub struct Command {
    pub plan: Plan,
    name: String,
    directory: String,
    programs: Vec<CString>,
}

impl Command {
    pub fn new(world: &World, start: &Start) -> Result<Self, Failure> {
        let Some(name) = start.argv.first().filter(|name| !name.is_empty()) else {
            return Err(failure("INVALID_INPUT", "argv: a command has at least a name"));
        };
        let directory = world.directory(&start.cwd);
        if directory.len() > PATH_MAX_BYTES {
            return Err(failure("INVALID_PATH", "cwd: longer than a path can be"));
        }
        let mut environment = world.environment.clone();
        environment.insert("PWD".into(), directory.clone());
        if start.terminal.is_some() {
            environment.insert("TERM".into(), "xterm-256color".into());
        }
        if !start.env.iter().all(|variable| add_variable(&mut environment, variable)) {
            return Err(failure("INVALID_INPUT", "env: every entry is NAME=value without a zero byte"));
        }
        let path = environment.get("PATH").map_or("", String::as_str);
        let passed_over =
            world.passed_over.as_ref().filter(|passed| passed.name == *name).map(|passed| &passed.directories);
        let is_needless = |part: &str| {
            world.never_there.contains(part) || passed_over.is_some_and(|directories| directories.contains(part))
        };
        let programs = candidates(name, path, is_needless);
        let environment = environment.into_iter().map(|(name, value)| format!("{name}={value}"));
        let parts = Parts {
            programs: strings("argv", programs)?,
            arguments: strings("argv", start.argv.iter().cloned())?,
            environment: strings("env", environment)?,
            directory: strings("cwd", [directory.clone()])?.remove(0),
            open_files: world.open_files,
            terminal: start.terminal.is_some(),
        };
        Ok(Self { plan: Plan::new(&parts), name: name.clone(), directory, programs: parts.programs })
    }

    /// Why the command does not run.
    pub fn explain(&self, step: Step, errno: i32) -> Failure {
        let errno = Errno::from_raw_os_error(errno);
        let directory = format!("the directory {}", self.directory);
        match (step, errno) {
            (_, Errno::AGAIN | Errno::NOMEM) => because("UNAVAILABLE", "no room for another process", errno),
            (Step::Directory, Errno::NOENT) => because("PATH_NOT_FOUND", directory, errno),
            (Step::Directory, Errno::NOTDIR) => because("NOT_A_DIRECTORY", directory, errno),
            (Step::Directory, Errno::ACCESS | Errno::PERM) => because("PATH_DENIED", directory, errno),
            (Step::Directory, _) => because("INVALID_PATH", directory, errno),
            (Step::Execute, Errno::TOOBIG) => because("TOO_LARGE", "arguments and environment", errno),
            (Step::Execute, _) if !self.exists() => {
                let place = if self.name.contains('/') { "" } else { " in PATH" };
                let mut missing = failure("COMMAND_NOT_FOUND", format!("there is no program {}{place}", self.name));
                missing.errno = errno.raw_os_error() as u32;
                missing
            }
            (Step::Execute, Errno::NOENT) => {
                because("COMMAND_NOT_EXECUTABLE", format!("the interpreter of {} is missing", self.name), errno)
            }
            (Step::Execute, _) => because("COMMAND_NOT_EXECUTABLE", format!("{} cannot be run", self.name), errno),
            (step, _) => because("INTERNAL", format!("starting the command, step {step:?}"), errno),
        }
    }

    /// Whether there is a file by that name at all. The kernel says the same when there is none and
    /// when the interpreter that it names is missing.
    fn exists(&self) -> bool {
        self.programs.iter().any(|program| {
            let program = Path::new(std::ffi::OsStr::from_bytes(program.to_bytes()));
            Path::new(&self.directory).join(program).is_file()
        })
    }
}

/// What to try for a name: itself if it has a slash, else in each directory of PATH that may have it.
fn candidates(name: &str, path: &str, is_needless: impl Fn(&str) -> bool) -> Vec<String> {
    if name.contains('/') {
        return vec![name.into()];
    }
    let directory = |part: &str| if part.is_empty() { ".".into() } else { part.trim_end_matches('/').to_string() };
    let parts = path.split(':').filter(|part| !is_needless(part));
    parts.map(|part| format!("{}/{name}", directory(part))).collect()
}

fn strings(field: &str, values: impl IntoIterator<Item = String>) -> Result<Vec<CString>, Failure> {
    let strings: Result<_, _> = values.into_iter().map(CString::new).collect();
    strings.map_err(|_| failure("INVALID_INPUT", format!("{field}: holds a zero byte")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_in_the_path() {
        let none = |_: &str| false;
        assert_eq!(candidates("ls", "/bin/:/usr/bin::x", none), ["/bin/ls", "/usr/bin/ls", "./ls", "x/ls"]);
        assert_eq!(candidates("./ls", "/bin", none), ["./ls"]);
        assert_eq!(candidates("ls", "", none), ["./ls"]);
        assert_eq!(candidates("ls", "/bin:/opt", |part| part == "/opt"), ["/bin/ls"]);
    }

    #[test]
    fn zero_bytes_are_refused() {
        assert_eq!(strings("argv", ["a\0b".to_string()]).unwrap_err().code, "INVALID_INPUT");
    }
}
