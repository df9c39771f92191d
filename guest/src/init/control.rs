//! The daemon's calls, in the order in which they come.

use super::{
    calls::stream_of,
    failure::{because, failure},
    gateway::FIRST_GUEST_STREAM,
    guest::Guest,
    terminal, tree, usage,
};
use crate::{
    egress::ports,
    frame::Broken,
    proto::link::{
        Done, Failure, FileCall, Forget, HostControl, Pong, PortsReport, Resize, guest_control::Message as Answer,
        host_control::Message,
    },
};

impl Guest {
    pub fn on_control(&mut self, control: HostControl) -> Result<(), Broken> {
        let id = control.id;
        let Some(message) = control.message else { return Err(Broken("an empty control message")) };
        let result = match message {
            Message::Hello(_) => return Err(Broken("a second hello")),
            Message::Ping(ping) => Ok(Some(Answer::Pong(Pong { token: ping.token, processes: self.count() }))),
            Message::Mounts(_) => Err(failure("INVALID_INPUT", "mounts come from a broker")),
            Message::Seal(seal) => self.on_seal(id, seal).map(|()| None),
            _ if !self.wall.is_closed() => Err(failure("INVALID_INPUT", "the sandbox is not sealed")),
            Message::Renew(renew) => self.renew(&renew).map(done),
            Message::Start(start) => self.start(id, &start).map(|()| None),
            Message::Signal(signal) => self.signal(&signal).map(done),
            Message::Resize(resize) => self.resize(&resize).map(done),
            Message::Forget(forget) => self.forget(&forget).map(done),
            Message::File(call) => self.open_call(id, call).map(|()| None),
            Message::Dial(dial) => self.dial(id, &dial).map(|()| None),
            Message::Ports(_) => Ok(Some(Answer::Ports(PortsReport { ports: ports::list() }))),
            Message::Usage(_) => Ok(Some(Answer::Usage(usage::report(self)))),
            Message::Shutdown(_) => {
                self.answer(id, Ok(Answer::Done(Done {})));
                self.flush_before_exit();
                // The kernel ends everything else with PID 1.
                self.exit_code = Some(0);
                Ok(None)
            }
        };
        match result {
            Ok(Some(answer)) => self.answer(id, Ok(answer)),
            Ok(None) => {}
            Err(failure) => self.answer(id, Err(failure)),
        }
        Ok(())
    }

    /// Processes alive, without PID 1, the monitors and what waits to become a command.
    fn count(&self) -> u32 {
        tree::count().saturating_sub(1 + self.monitors.len() + self.waiting().count()) as u32
    }

    fn resize(&mut self, resize: &Resize) -> Result<(), Failure> {
        let Some(process) = self.processes.get(&resize.stream) else { return Err(unknown()) };
        if !process.terminal {
            return Err(failure("NO_TERMINAL", "the process has no terminal"));
        }
        let Some(pipe) = &process.pipes[0] else { return Err(failure("PROCESS_ENDED", "it has exited")) };
        let result = terminal::resize(&pipe.fd, resize.columns, resize.rows);
        result.map_err(|errno| because("INTERNAL", "resizing the terminal", errno))
    }

    fn forget(&mut self, forget: &Forget) -> Result<(), Failure> {
        let Some(process) = self.processes.get(&forget.stream) else { return Err(unknown()) };
        if process.finished.is_none() {
            return Err(failure("INVALID_INPUT", "the process has not exited"));
        }
        self.detach_rest(forget.stream);
        self.processes.remove(&forget.stream);
        // Whoever waited for the command has its answer by now: time to make ready for the next one.
        self.refill_due = true;
        Ok(())
    }

    fn open_call(&mut self, id: u32, call: FileCall) -> Result<(), Failure> {
        if call.call.is_none() {
            return Err(failure("METHOD_UNKNOWN", "a file call of another version"));
        }
        if let Some(stream) = stream_of(&call) {
            self.claim_stream(stream)?;
        }
        if let Some(link) = &mut self.link {
            self.calls.open(id, call, link);
        }
        Ok(())
    }

    /// A stream that a message opens: any number but one that is in use.
    pub fn claim_stream(&mut self, stream: u32) -> Result<(), Failure> {
        let in_use = self.processes.contains_key(&stream)
            || self.calls.has_stream(stream)
            || self.gateway.sockets.contains_key(&stream);
        if stream == 0 || stream >= FIRST_GUEST_STREAM || in_use {
            return Err(failure("INVALID_INPUT", "stream: 0 or in use"));
        }
        self.last_stream = self.last_stream.max(stream);
        Ok(())
    }
}

pub fn unknown() -> Failure {
    failure("PROCESS_NOT_FOUND", "no process has this stream")
}

fn done(_: ()) -> Option<Answer> {
    Some(Answer::Done(Done {}))
}
