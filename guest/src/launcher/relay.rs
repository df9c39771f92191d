//! The conversation with the daemon: one thread, one poll. Whatever is slow (the daemon, a reader of our
//! output) holds back only what feeds it, and signals are always heard.

use std::{
    io::ErrorKind,
    os::fd::AsFd,
    os::unix::net::UnixStream,
    process,
    time::{Duration, Instant},
};

use prost::Message;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::SendFlags,
    stdio,
};

use super::{
    answers::{self, Answers},
    home::Home,
    outlet::Outlet,
    terminal,
    trouble::Trouble,
    ttrpc::{self, Incoming},
};
use crate::{
    proto::terminal::{InvokeRequest, InvokeResponse, Open, invoke_request::Input, invoke_response::Output},
    sys::signalfd::{SignalFd, die_by},
};

/// Told to the daemon, which knows what to end.
const TOLD: [i32; 6] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// Those of them that mean an end.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// About the terminal.
const ABOUT_TERMINAL: [i32; 2] = [libc::SIGWINCH, libc::SIGCONT];
/// Would end us: they still do, but the terminal is put back first.
const FATAL: [i32; 5] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGXCPU, libc::SIGIO];
/// The same signal again within this time means now.
const IMPATIENCE: Duration = Duration::from_secs(1);

const PIECE_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;
const MANY_BYTES: usize = 256 * 1024;
/// Input is not read while this much waits to be sent.
const UNSENT_BYTES: usize = 256 * 1024;

pub enum Outcome {
    Exit(u8),
    /// The daemon is of another build and is stopping.
    Restart,
}

pub fn relay(stream: UnixStream, open: Open, home: &Home) -> Result<Outcome, Trouble> {
    let signals: Vec<i32> = [&TOLD[..], &ABOUT_TERMINAL, &FATAL].concat();
    let signals = SignalFd::new(&signals).map_err(|error| broken(&format!("no signals: {error}")))?;
    stream.set_nonblocking(true).map_err(|error| broken(&error.to_string()))?;
    terminal::restore_on_panic();
    let request = ttrpc::Request {
        service: "caisson.terminal.v1.TerminalService".into(),
        method: "Invoke".into(),
        ..Default::default()
    };
    let mut relay = Relay {
        stream,
        signals,
        received: Vec::new(),
        read_bytes: READ_BYTES,
        unsent: Vec::new(),
        outlet: Outlet::new(),
        answers: Answers::default(),
        reads_stdin: false,
        typed_ahead: Vec::new(),
        stdin_ended: false,
        leaves_raw: false,
        has_spoken: false,
        outcome: None,
        last_signal: None,
    };
    ttrpc::put_open(&mut relay.unsent, &request);
    relay.say(Input::Open(open));
    let result = relay.run(home);
    terminal::restore();
    result
}

struct Relay {
    stream: UnixStream,
    signals: SignalFd,
    received: Vec<u8>,
    /// How much the next read asks for.
    read_bytes: usize,
    unsent: Vec<u8>,
    outlet: Outlet,
    answers: Answers,
    reads_stdin: bool,
    /// Read before somebody wanted it.
    typed_ahead: Vec<u8>,
    stdin_ended: bool,
    /// The terminal is put back once it has what was written before.
    leaves_raw: bool,
    /// Something of the command has been seen, so it cannot be repeated.
    has_spoken: bool,
    outcome: Option<Outcome>,
    last_signal: Option<(i32, Instant)>,
}

/// What a polled descriptor is.
#[derive(Clone, Copy)]
enum Source {
    Signals,
    Daemon,
    Stdin,
    Outlet,
    File(usize),
}

impl Relay {
    fn run(&mut self, home: &Home) -> Result<Outcome, Trouble> {
        self.send();
        loop {
            self.flush()?;
            if self.leaves_raw && self.outlet.waits_for().is_none() {
                self.leaves_raw = false;
                terminal::restore();
            }
            if self.outlet.waits_for().is_none()
                && let Some(outcome) = self.outcome.take()
            {
                return Ok(outcome);
            }
            // Backwards: a file that has ended leaves its place to the next one.
            for source in self.wait()?.into_iter().rev() {
                match source {
                    Source::Signals => self.hear_signals(),
                    Source::Daemon => self.converse(home)?,
                    Source::Stdin => self.read_stdin(),
                    Source::Outlet => {}
                    Source::File(index) => {
                        if let Some(content) = self.answers.advance(index) {
                            self.say(Input::File(content));
                        }
                    }
                }
            }
            self.send();
        }
    }

    /// Waits until something can be done, and says what.
    fn wait(&self) -> Result<Vec<Source>, Trouble> {
        let mut sources = vec![Source::Signals];
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let mut add = |source, fd, events| {
            sources.push(source);
            fds.push(PollFd::from_borrowed_fd(fd, events));
        };
        let mut daemon = PollFlags::empty();
        if self.outlet.waits_for().is_none() {
            daemon |= PollFlags::IN;
        }
        if !self.unsent.is_empty() {
            daemon |= PollFlags::OUT;
        }
        // Polled for nothing, a closed connection would still wake us, again and again.
        if !daemon.is_empty() {
            add(Source::Daemon, self.stream.as_fd(), daemon);
        }
        if let Some(stream) = self.outlet.waits_for() {
            add(Source::Outlet, stream, PollFlags::OUT);
        }
        if self.unsent.len() < UNSENT_BYTES {
            if self.reads_stdin && !self.stdin_ended {
                add(Source::Stdin, stdio::stdin(), PollFlags::IN);
            }
            for (index, file) in self.answers.waits_for().enumerate() {
                add(Source::File(index), file, PollFlags::IN);
            }
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(broken(&error.to_string())),
        }
        let ready = sources.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    fn hear_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal {
                libc::SIGWINCH => self.tell_size(),
                libc::SIGCONT => {
                    terminal::after_continue();
                    self.tell_size();
                }
                _ if FATAL.contains(&signal) => {
                    terminal::restore();
                    die_by(signal);
                }
                _ => {
                    let now = Instant::now();
                    let again = self.last_signal.is_some_and(|(last, at)| last == signal && now - at < IMPATIENCE);
                    if again && ENDING.contains(&signal) {
                        terminal::restore();
                        process::exit(128 + signal);
                    }
                    self.last_signal = Some((signal, now));
                    self.say(Input::Signal(signal.unsigned_abs()));
                }
            }
        }
    }

    fn tell_size(&mut self) {
        if let Some(size) = terminal::size() {
            self.say(Input::Size(size));
        }
    }

    fn read_stdin(&mut self) {
        let mut bytes = vec![0; PIECE_BYTES];
        match rustix::io::read(stdio::stdin(), &mut bytes) {
            Ok(length) if length > 0 => {
                bytes.truncate(length);
                self.say(Input::Stdin(bytes));
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An unreadable input (a terminal that is gone) has ended too.
            Ok(_) | Err(_) => {
                self.stdin_ended = true;
                self.say(Input::StdinEnd(true));
            }
        }
    }

    /// Reads what the daemon has sent and acts on every whole message.
    fn converse(&mut self, home: &Home) -> Result<(), Trouble> {
        if self.outlet.waits_for().is_some() {
            return Ok(());
        }
        let start = self.received.len();
        self.received.resize(start + self.read_bytes, 0);
        let result = rustix::io::read(&self.stream, &mut self.received[start..]);
        self.received.truncate(start + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => return Err(vanished(home)),
            // Most calls say little; what fills a small buffer will fill a large one.
            Ok(length) => self.read_bytes = if length < self.read_bytes { READ_BYTES } else { MANY_BYTES },
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(_) => return Err(vanished(home)),
        }
        let mut received = std::mem::take(&mut self.received);
        let mut taken = 0;
        while self.outcome.is_none() {
            let Some((frame, length)) = ttrpc::take(&received[taken..]).map_err(broken)? else { break };
            match frame {
                Incoming::Data(message) => {
                    let response = InvokeResponse::decode(message).map_err(|error| broken(&error.to_string()))?;
                    self.obey(response)?;
                }
                Incoming::Response(response) => return Err(refused(response)),
                Incoming::Nothing => {}
            }
            taken += length;
        }
        received.drain(..taken);
        self.received = received;
        Ok(())
    }

    fn obey(&mut self, response: InvokeResponse) -> Result<(), Trouble> {
        let Some(output) = response.output else { return Err(broken("an empty message")) };
        match output {
            Output::Stdout(bytes) => self.outlet.push(false, bytes),
            Output::Stderr(bytes) => self.outlet.push(true, bytes),
            Output::Exit(code) => self.outcome = Some(Outcome::Exit(code.min(255) as u8)),
            Output::WantStdin(wanted) => {
                self.reads_stdin = wanted;
                if wanted && !self.typed_ahead.is_empty() {
                    let ahead = std::mem::take(&mut self.typed_ahead);
                    self.say(Input::Stdin(ahead));
                }
            }
            Output::Raw(true) => {
                self.leaves_raw = false;
                self.typed_ahead.extend(terminal::make_raw());
            }
            Output::Raw(false) => self.leaves_raw = true,
            Output::ReadFile(request) => {
                if let Some(content) = self.answers.begin(&request) {
                    self.say(Input::File(content));
                }
            }
            Output::Env(request) => {
                for piece in answers::variables(&request) {
                    self.say(Input::File(piece));
                }
            }
            Output::Restart(_) if self.has_spoken => return Err(broken("a restart in the middle of a call")),
            Output::Restart(_) => self.outcome = Some(Outcome::Restart),
        }
        self.has_spoken = true;
        Ok(())
    }

    fn say(&mut self, input: Input) {
        ttrpc::put_data(&mut self.unsent, &InvokeRequest { input: Some(input) });
    }

    /// Sends what the socket takes now. A daemon that hangs up may have said goodbye first: reading tells.
    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match rustix::net::send(&self.stream, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Writes what the caller's streams take now. A reader that is gone ends us as it ends other programs.
    fn flush(&mut self) -> Result<(), Trouble> {
        let Err(error) = self.outlet.flush() else { return Ok(()) };
        terminal::restore();
        if error.kind() == ErrorKind::BrokenPipe {
            die_by(libc::SIGPIPE);
        }
        Err(Trouble::new(format!("cannot write the output: {error}"), ""))
    }
}

fn broken(what: &str) -> Trouble {
    Trouble::new(
        format!("launcher and daemon do not understand each other: {what}"),
        "Restart it with `caisson daemon restart`.",
    )
}

fn vanished(home: &Home) -> Trouble {
    Trouble::new(
        "the daemon went away before the command ended",
        format!("Sandboxes live on: `caisson ps` starts the daemon again. Its log: {}", home.log().display()),
    )
}

/// The daemon ended the call without an exit code.
fn refused(response: &[u8]) -> Trouble {
    let status = ttrpc::Response::decode(response).ok().and_then(|response| response.status);
    match status.filter(|status| status.code != 0) {
        Some(status) => Trouble::new(status.message, "`caisson daemon logs` may say more."),
        None => broken("the call ended without an exit code"),
    }
}
