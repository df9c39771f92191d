//! Reaching the daemon: connect, or start it first. Several launchers may find it missing at once;
//! one of them starts it, the others wait for the same socket.

use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, IsTerminal, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FlockOperation,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    command,
    home::Home,
    socket::{Connection, connect},
    trouble::Trouble,
};
use crate::sys::detach::detach;

/// How long a daemon may take to listen: on a machine that is busy, or on its very first start, many seconds.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long an old one may take to go.
const PATIENCE: Duration = Duration::from_secs(30);
/// Waiting shorter than this is not worth a word.
const QUIET: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(2);
/// The daemon's exit code when another one, about to listen or to go, has the data directory.
const DIRECTORY_IN_USE: i32 = 75;
/// How much of the log explains a failed start.
const LOG_TAIL: u64 = 2048;

/// Connects to the daemon, starting it if nobody listens.
pub fn reach(home: &Home) -> Result<Connection, Trouble> {
    if let Some(connection) = connect(home)? {
        return Ok(connection);
    }
    home.create()?;
    let mut progress = Progress::new();
    let lock = open_private(&home.run().join("start.lock"))?;
    let mut started: Option<Started> = None;
    while progress.waited() < START_PATIENCE {
        if started.is_none() && rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Whoever held the lock before us may have started it meanwhile.
            if let Some(connection) = connect(home)? {
                return Ok(connection);
            }
            started = Some(Started::new(home)?);
        }
        if let Some(connection) = connect(home)? {
            return Ok(connection);
        }
        if let Some(started) = &mut started {
            started.check(home)?;
        }
        progress.tick();
        thread::sleep(PAUSE);
    }
    Err(Trouble::new(
        format!("the daemon did not listen within {} seconds", START_PATIENCE.as_secs()),
        format!("Its log may say why: {}", home.log().display()),
    ))
}

/// Waits for a daemon that said it is stopping.
pub fn wait_until_gone(home: &Home, peer: Option<Pid>) -> Result<(), Trouble> {
    let begun = Instant::now();
    if let Some(process) = peer.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
    while begun.elapsed() < PATIENCE {
        if connect(home)?.is_none() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(Trouble::new(
        "a daemon of another build is still stopping",
        "Repeat in a moment; `caisson daemon status` says what it waits for.",
    ))
}

/// A daemon that this launcher has just started.
struct Started {
    child: Child,
    /// Where its own words begin in the log.
    log_start: u64,
}

impl Started {
    fn new(home: &Home) -> Result<Self, Trouble> {
        let mut log = open_private(&home.log())?;
        let log_start = log.seek(SeekFrom::End(0)).unwrap_or(0);
        let mut command = command::daemon_command()?;
        let errors = log.try_clone().map_err(|error| cannot_start(&error))?;
        command
            .env_clear()
            .envs(env::vars_os().filter(|(name, _)| name.to_str().is_some_and(goes_to_the_daemon)))
            .env("CAISSON_HOME", &home.path)
            // From the first line on: Node need not even load what it reads TypeScript with.
            .env("NODE_COMPILE_CACHE", home.path.join("cache"))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        let child = detach(&mut command).spawn().map_err(|error| cannot_start(&error))?;
        Ok(Self { child, log_start })
    }

    /// Fails if the daemon has ended and none listens.
    fn check(&mut self, home: &Home) -> Result<(), Trouble> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        if status.code() == Some(DIRECTORY_IN_USE) {
            return Ok(());
        }
        // One that was started otherwise may hold the directory and be about to listen.
        for _ in 0..100 {
            if connect(home)?.is_some() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let words = tail(home, self.log_start).unwrap_or_default();
        let words = if words.is_empty() { String::new() } else { format!(":\n{words}") };
        Err(Trouble::new(
            format!("the daemon did not start ({status}){words}"),
            format!("Its whole log: {}", home.log().display()),
        ))
    }
}

fn cannot_start(error: &io::Error) -> Trouble {
    Trouble::new(
        format!("cannot start the daemon: {error}"),
        "Check CAISSON_NODE, CAISSON_ROOT and CAISSON_DAEMON_COMMAND.",
    )
}

/// The daemon outlives this call, so it gets what is the user's and nothing of the moment.
fn goes_to_the_daemon(name: &str) -> bool {
    matches!(name, "PATH" | "HOME" | "USER" | "LANG" | "TZ" | "TMPDIR" | "CONTAINER_HOST")
        || matches!(name, "DOCKER_HOST" | "DOCKER_CONTEXT" | "DOCKER_CONFIG")
        || ["XDG_", "CAISSON_", "OTEL_"].iter().any(|prefix| name.starts_with(prefix))
        || TOOL_VARIABLES.contains(&name)
        || (name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX"))
}

/// By these a developer's tools are told where to fetch from and whom to trust: presets ask the daemon about it.
const TOOL_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_CONFIG_GLOBAL",
    "GIT_SSL_CAINFO",
    "GOENV",
    "GONOPROXY",
    "GONOSUMDB",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "JAVA_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PYENV_ROOT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "npm_config_registry",
    "npm_config_userconfig",
];

fn open_private(path: &std::path::Path) -> Result<File, Trouble> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|error| {
        Trouble::new(format!("cannot open {}: {error}", path.display()), "Check the data directory's owner and mode.")
    })
}

fn tail(home: &Home, start: u64) -> io::Result<String> {
    let mut log = File::open(home.log())?;
    let end = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(start.max(end.saturating_sub(LOG_TAIL))))?;
    let mut bytes = Vec::new();
    log.take(LOG_TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let printable = text.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect::<String>();
    Ok(for_people(&printable).iter().map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n"))
}

/// A daemon that knows why it cannot start says so in a sentence; the log's own lines are for whoever looks further.
fn for_people(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let sentence = lines.iter().rposition(|line| line.starts_with("caisson: "));
    lines[sentence.unwrap_or(0)..].to_vec()
}

/// A word on a terminal when starting takes long enough to wonder.
struct Progress {
    begun: Instant,
    shown: bool,
}

impl Progress {
    fn new() -> Self {
        Self { begun: Instant::now(), shown: false }
    }

    fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    fn tick(&mut self) {
        if !self.shown && self.waited() > QUIET && io::stderr().is_terminal() {
            self.shown = true;
            let _ = io::stderr().write_all("caisson: starting the daemon…".as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{for_people, goes_to_the_daemon};

    #[test]
    fn a_sentence_of_the_daemon_s_hides_the_lines_of_its_log() {
        let said = "{\"level\":\"error\"}\ncaisson: the file is wrong\n         Correct it.\n";
        assert_eq!(for_people(said), ["caisson: the file is wrong", "         Correct it."]);
        assert_eq!(for_people("SyntaxError: x\n  at y\n"), ["SyntaxError: x", "  at y"]);
    }

    #[test]
    fn the_daemon_gets_the_user_s_environment_and_nothing_of_the_call() {
        for name in [
            "PATH",
            "HOME",
            "XDG_DATA_HOME",
            "CAISSON_ROOT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "TZ",
            "DOCKER_HOST",
            "GOPROXY",
            "CARGO_REGISTRIES_MINE_INDEX",
        ] {
            assert!(goes_to_the_daemon(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "SSH_AUTH_SOCK",
            "PATHS",
            "XDG",
            "DOCKER_AUTH_CONFIG",
        ] {
            assert!(!goes_to_the_daemon(name), "{name}");
        }
    }
}
