//! The loop: one thread that owns every descriptor and every decision of PID 1.

use std::{
    collections::{BTreeMap, HashMap},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::Rlimit;

use super::{
    calls::{Calls, Serve},
    doors::Newcomer,
    events::{EventFlags, Poller, Token},
    gateway::Gateway,
    link::Link,
    process::Process,
    sealing::{Preparer, Sealer, Wall},
    spares::Spare,
};
use crate::{
    egress::listeners::Listeners,
    sys::{board::Board, signalfd::SignalFd},
};

/// What the loop is built on, so that tests can do without a wall.
#[derive(Clone, Copy)]
pub struct Hooks {
    pub listen: fn() -> Listeners,
    pub prepare: Preparer,
    pub seal: Sealer,
    pub serve: Serve,
}

pub struct Guest {
    pub hooks: Hooks,
    pub poller: Poller,
    pub door: OwnedFd,
    pub children: SignalFd,
    pub wall: Wall,
    /// The limit on open files that PID 1 was started with.
    pub open_files: Rlimit,
    /// Connections that have not said who they are, and brokers.
    pub newcomers: Vec<Newcomer>,
    pub last_connection: u32,
    pub link: Option<Link>,
    /// Frames that came with the last ones wait until the seal is done or answers are read.
    pub held_back: bool,
    pub processes: BTreeMap<u32, Process>,
    /// Where the kernel notes the pids of commands, by turn.
    pub board: Board,
    pub last_slot: u32,
    /// Monitors that wait for a command, and whether it is time to make one.
    pub spares: Vec<Spare>,
    pub refill_due: bool,
    /// Commands started so far.
    pub starts: u32,
    /// Living monitors and their streams, also of processes that were forgotten.
    pub monitors: HashMap<i32, u32>,
    pub calls: Calls,
    pub gateway: Gateway,
    /// The highest stream that was ever opened.
    pub last_stream: u32,
    /// Set when there is nothing more to do.
    pub exit_code: Option<u8>,
}

impl Guest {
    pub fn new(door: OwnedFd, open_files: Rlimit, hooks: Hooks) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        let children = SignalFd::new(&[libc::SIGCHLD])?;
        let calls = Calls::new(hooks.serve)?;
        poller.add(&door, Token::Door, EventFlags::IN)?;
        poller.add(&children, Token::Children, EventFlags::IN)?;
        poller.add(&*calls.wake, Token::Wake, EventFlags::IN)?;
        let gateway = Gateway::new((hooks.listen)(), &poller, open_files.maximum.unwrap_or(u64::MAX))?;
        Ok(Self {
            hooks,
            poller,
            door,
            children,
            wall: Wall::default(),
            open_files,
            newcomers: Vec::new(),
            last_connection: 0,
            link: None,
            held_back: false,
            processes: BTreeMap::new(),
            board: Board::new()?,
            last_slot: 0,
            spares: Vec::new(),
            refill_due: false,
            starts: 0,
            monitors: HashMap::new(),
            calls,
            gateway,
            last_stream: 0,
            exit_code: None,
        })
    }

    /// Serves until it is told to end; gives the code to exit with.
    pub fn run(mut self) -> u8 {
        let mut happened = Vec::with_capacity(64);
        loop {
            if let Some(code) = self.exit_code {
                return code;
            }
            let mut limit = self.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
            if self.refill_due {
                limit = Some(Duration::ZERO);
            }
            if self.poller.wait(limit, &mut happened).is_err() {
                return 70;
            }
            if happened.is_empty() && self.refill_due {
                // Nobody waits for anything else right now.
                self.refill();
            }
            for (token, flags) in happened.iter().copied() {
                self.on_event(token, flags);
            }
            self.on_time(Instant::now());
            self.flush();
            // What was held back may be due now, and its answers are to go out as well.
            while self.held_back && !self.is_paused() && self.exit_code.is_none() {
                self.handle_frames();
                self.flush();
            }
        }
    }

    fn on_event(&mut self, token: Token, flags: EventFlags) {
        match token {
            Token::Door => self.accept(),
            Token::Children => {
                // A command's exit need not wait until its monitor is buried.
                self.flush();
                self.reap();
            }
            Token::Wake => self.calls.on_wake(self.link.as_mut()),
            Token::Connection(number) => self.on_connection(number, flags),
            Token::Report(stream) => self.on_report(stream),
            Token::Stdin(stream) => self.on_input_room(stream),
            Token::Stdout(stream) => self.on_output(stream, 0, flags),
            Token::Stderr(stream) => self.on_output(stream, 1, flags),
            Token::Listener(index) => self.on_listener(index as usize),
            Token::Names => self.on_names(),
            Token::NameCaller(number) => self.gateway.callers.hear(number, &mut self.gateway.names),
            Token::Socket(stream) => self.on_socket(stream, flags),
        }
    }

    fn on_connection(&mut self, number: u32, flags: EventFlags) {
        if self.link.as_ref().is_some_and(|link| link.number == number) {
            self.on_link(flags);
        } else {
            self.on_newcomer(number);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let processes = self.processes.values().filter_map(Process::next_deadline);
        let newcomers = self.newcomers.iter().filter_map(|newcomer| newcomer.until);
        let callers = self.gateway.callers.next_deadline();
        processes.chain(newcomers).chain(callers).chain(self.wall.deadline()).min()
    }

    fn on_time(&mut self, now: Instant) {
        self.newcomers.retain(|newcomer| newcomer.until.is_none_or(|until| until > now));
        self.gateway.callers.on_time(now);
        self.seal_if_overdue(now);
        let due = |process: &&Process| process.next_deadline().is_some_and(|at| at <= now);
        let streams: Vec<u32> = self.processes.values().filter(due).map(|process| process.stream).collect();
        for stream in streams {
            self.on_process_time(stream, now);
        }
    }
}
