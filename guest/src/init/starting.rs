//! Starting a command, and what its monitor tells about it.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    io::{self, Errno, fcntl_dupfd_cloexec},
    pipe::{PipeFlags, pipe_with},
};

use super::{
    command::Command,
    events::{EventFlags, Token},
    failure::{because, failure},
    guest::Guest,
    input::Input,
    output::Output,
    output_pipes::rewatch,
    process::{Pipe, Process, Starting},
    spares::Spare,
    terminal,
    world::World,
};
use crate::{
    frame::Tag,
    proto::link::{Failure, Start, Started, guest_control::Message},
    sys::{
        report::{RECORD_BYTES, Report, Step},
        signals,
    },
};

/// Longer would be as good as no timeout.
const LONGEST_GRACE: Duration = Duration::from_secs(86_400);
/// Processes that are running or not yet forgotten.
const MAX_PROCESSES: usize = 4096;

/// A monitor at work, and the guest's ends of the command's standard descriptors.
struct Begun {
    monitor: i32,
    slot: u32,
    report: OwnedFd,
    input: Input,
    pipes: [Option<Pipe>; 2],
}

/// The guest's and the command's ends of its standard descriptors.
struct Ends {
    input: Input,
    pipes: [Option<Pipe>; 2],
    command: [OwnedFd; 3],
}

impl Guest {
    pub fn start(&mut self, id: u32, start: &Start) -> Result<(), Failure> {
        self.claim_stream(start.stream)?;
        let Some(world) = self.wall.world() else { return Err(failure("INVALID_INPUT", "not sealed")) };
        if self.processes.len() >= MAX_PROCESSES {
            return Err(failure("QUEUE_FULL", format!("at most {MAX_PROCESSES} processes are kept")));
        }
        if start.root && !rustix::process::geteuid().is_root() {
            return Err(failure("NOT_ENFORCEABLE", "root: the sandbox has a single user, who is not root"));
        }
        let command = Command::new(world, start)?;
        let started = Instant::now();
        if !start.rehearsal {
            if let (Some(world), Some(name)) = (self.wall.world_mut(), start.argv.first()) {
                world.last_name.clone_from(name);
            }
            self.starts = self.starts.saturating_add(1);
        }
        let Begun { monitor, slot, report, input, pipes } = self.begin(&command, start)?;
        self.monitors.insert(monitor, start.stream);
        if let Err(errno) = self.poller.add(&report, Token::Report(start.stream), EventFlags::IN) {
            // Nobody would hear of it. The noted pid says whether the command runs already.
            let _ = signals::send(monitor, libc::SIGKILL);
            let _ = signals::send(self.board.slot(slot).load(Ordering::Relaxed), libc::SIGKILL);
            return Err(no_room(errno));
        }
        let after = |milliseconds: u64| started.checked_add(Duration::from_millis(milliseconds));
        let process = Process {
            stream: start.stream,
            starting: Some(Box::new(Starting { call: id, command, slot })),
            pid: 0,
            monitor: Some(monitor),
            report: Some(report),
            terminal: start.terminal.is_some(),
            input,
            pipes,
            output: Output::default(),
            started,
            deadline: Some(start.timeout_ms).filter(|timeout| *timeout > 0).and_then(after),
            grace: Duration::from_millis(start.grace_ms).min(LONGEST_GRACE),
            timed_out: false,
            ending: None,
            exit: None,
            finished: None,
            told: false,
            enlisted: false,
        };
        self.processes.insert(start.stream, process);
        Ok(())
    }

    fn begin(&mut self, command: &Command, start: &Start) -> Result<Begun, Failure> {
        let plan = &command.plan;
        if !start.stdin && start.terminal.is_none() {
            if let Some(Spare { pid, slot, socket, output: [stdout, stderr] }) = self.employ_spare(plan, None) {
                let pipes = [Some(pipe(stdout, Tag::Stdout)), Some(pipe(stderr, Tag::Stderr))];
                return Ok(Begun { monitor: pid, slot, report: socket, input: Input::default(), pipes });
            }
        }
        let world = self.wall.world().ok_or_else(|| failure("INVALID_INPUT", "not sealed"))?;
        let Ends { input, pipes, command: ends } = open_ends(world, start).map_err(no_room)?;
        let stdio = [ends[0].as_fd(), ends[1].as_fd(), ends[2].as_fd()];
        let (monitor, slot, report) = match self.employ_spare(plan, Some(stdio)) {
            Some(spare) => (spare.pid, spare.slot, spare.socket),
            None => {
                let employed = self.employ_new(plan, stdio);
                employed.map_err(|errno| command.explain(Step::Monitor, errno.raw_os_error()))?
            }
        };
        Ok(Begun { monitor, slot, report, input, pipes })
    }

    /// A monitor has something to say, or is gone.
    pub fn on_report(&mut self, stream: u32) {
        let mut records = [0; 4 * RECORD_BYTES];
        loop {
            let Some(process) = self.processes.get_mut(&stream) else { return };
            let Some(pipe) = &process.report else { return };
            match io::read(pipe, &mut records) {
                Ok(0) => process.report = None,
                Ok(count) => {
                    for record in records[..count].chunks_exact(RECORD_BYTES) {
                        if let Some(report) = record.first_chunk().and_then(Report::decode) {
                            self.take_report(stream, report);
                        }
                    }
                    if count < records.len() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => process.report = None,
            }
        }
    }

    pub fn take_report(&mut self, stream: u32, report: Report) {
        match report {
            Report::Started { pid } => {
                let Some(process) = self.processes.get_mut(&stream) else { return };
                process.pid = pid;
                let call = process.starting.take().map_or(0, |starting| starting.call);
                rewatch(&self.poller, process);
                self.answer(call, Ok(Message::Started(Started { pid: pid as u32 })));
            }
            Report::Refused { step, errno } => {
                let Some(process) = self.processes.get(&stream) else { return };
                let Some(starting) = &process.starting else { return };
                let failure = starting.command.explain(step, errno);
                self.refuse(stream, failure);
            }
            Report::Exited { raw_status, used, left } => self.on_exit(stream, raw_status, used, left),
        }
    }

    /// The command does not run. When nobody waits for the answer any more, it is told as an exit
    /// with the code that shells use for it.
    pub fn refuse(&mut self, stream: u32, failure: Failure) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        let call = process.starting.take().map_or(0, |starting| starting.call);
        if call != 0 {
            self.processes.remove(&stream);
            return self.answer(call, Err(failure));
        }
        let code = if failure.code == "COMMAND_NOT_FOUND" { 127 } else { 126 };
        self.on_exit(stream, code << 8, Default::default(), false);
    }
}

fn no_room(errno: Errno) -> Failure {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOSPC => {
            because("UNAVAILABLE", "no room for another process", errno)
        }
        _ => because("INTERNAL", "standard input and output", errno),
    }
}

fn open_ends(world: &World, start: &Start) -> io::Result<Ends> {
    if let Some(window) = &start.terminal {
        let (master, slave) = terminal::open(window.columns, window.rows)?;
        let input = Input::terminal(fcntl_dupfd_cloexec(&master, 3)?);
        let command = [fcntl_dupfd_cloexec(&slave, 3)?, fcntl_dupfd_cloexec(&slave, 3)?, slave];
        return Ok(Ends { input, pipes: [Some(pipe(master, Tag::Stdout)), None], command });
    }
    let (stdout, of_stdout) = reading_pipe()?;
    let (stderr, of_stderr) = reading_pipe()?;
    let (input, of_stdin) = if start.stdin {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        (Input::pipe(writer), reader)
    } else {
        (Input::default(), fcntl_dupfd_cloexec(&world.null, 3)?)
    };
    let pipes = [Some(pipe(stdout, Tag::Stdout)), Some(pipe(stderr, Tag::Stderr))];
    Ok(Ends { input, pipes, command: [of_stdin, of_stdout, of_stderr] })
}

/// A pipe whose reader does not wait.
pub fn reading_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    Ok((reader, writer))
}

fn pipe(fd: OwnedFd, tag: Tag) -> Pipe {
    Pipe { fd, tag, watched: false, taken: 0, owed: 0, full_reads: 0 }
}
