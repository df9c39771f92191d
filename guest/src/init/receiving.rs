//! Reading from the link. The daemon is trusted, and still held to the rules: a frame that breaks
//! one ends the connection, and nothing that runs is hurt by that.

use std::mem;

use rustix::io::{Errno, read};

use super::{events::EventFlags, gateway::FIRST_GUEST_STREAM, guest::Guest, output_pipes::rewatch, sending::enlist};
use crate::frame::{Broken, Frame, Kind, Tag, push_ack};

impl Guest {
    /// Whether frames must wait: for the seal that is under way, or for answers to be read.
    pub fn is_paused(&self) -> bool {
        self.wall.is_waiting() || self.link.as_ref().is_some_and(|link| link.is_backlogged())
    }

    pub fn on_link(&mut self, flags: EventFlags) {
        if self.is_paused() {
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.cut();
            }
            return;
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let Some(link) = &mut self.link else { return };
        match read(&link.fd, link.decoder.space()) {
            Ok(0) => self.cut(),
            Ok(count) => {
                link.decoder.filled(count);
                self.handle_frames();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.cut(),
        }
    }

    /// Handles the frames that are there, in order.
    pub fn handle_frames(&mut self) {
        let Some(link) = &mut self.link else { return };
        let number = link.number;
        let mut decoder = mem::take(&mut link.decoder);
        let outcome = loop {
            self.held_back = self.is_paused();
            if self.held_back || self.exit_code.is_some() {
                break Ok(());
            }
            match decoder.next() {
                Ok(Some(frame)) => {
                    if let Err(broken) = self.handle_frame(frame) {
                        break Err(broken);
                    }
                }
                Ok(None) => break Ok(()),
                Err(broken) => break Err(broken),
            }
        };
        match (&mut self.link, outcome) {
            (Some(link), Ok(())) if link.number == number => link.decoder = decoder,
            (Some(link), Err(_)) if link.number == number => self.cut(),
            _ => {}
        }
    }

    fn handle_frame(&mut self, frame: Frame<'_>) -> Result<(), Broken> {
        if frame.tag != Tag::None {
            return Err(Broken("a tag from the daemon"));
        }
        if frame.kind == Kind::Control {
            return self.on_control(frame.message()?);
        }
        let stream = frame.stream;
        let last = if stream < FIRST_GUEST_STREAM { self.last_stream } else { self.gateway.last_stream };
        if stream > last {
            return Err(Broken("a stream that was never opened"));
        }
        if self.processes.contains_key(&stream) {
            return self.on_process_frame(frame);
        }
        if self.gateway.sockets.contains_key(&stream) {
            return self.on_socket_frame(frame);
        }
        match frame.kind {
            Kind::Data => self.calls.data(stream, frame.payload)?,
            Kind::Ack => self.calls.acknowledge(stream, frame.position()?)?,
            Kind::End => self.calls.end(stream),
            Kind::Reset => self.calls.reset(stream),
            Kind::Control => {}
        }
        Ok(())
    }

    fn on_process_frame(&mut self, frame: Frame<'_>) -> Result<(), Broken> {
        let Some(process) = self.processes.get_mut(&frame.stream) else { return Ok(()) };
        match frame.kind {
            Kind::Data => {
                process.input.accept(frame.payload)?;
                self.after_input(frame.stream);
            }
            // Giving a process's stream up ends its input; its output is told as ever, for other readers.
            Kind::End | Kind::Reset => {
                process.input.end();
                self.after_input(frame.stream);
            }
            Kind::Ack => {
                if !process.output.acknowledge(frame.position()?) {
                    return Err(Broken("ACK beyond what was sent"));
                }
                rewatch(&self.poller, process);
                if process.finished.is_some() {
                    process.output.release_if_done();
                }
            }
            Kind::Control => {}
        }
        Ok(())
    }

    /// Acknowledges input, and asks to be told when the pipe takes more.
    pub fn after_input(&mut self, stream: u32) {
        let Some(process) = self.processes.get_mut(&stream) else { return };
        if let (Some(position), Some(link)) = (process.input.news(), &mut self.link) {
            push_ack(&mut link.control, stream, position);
        }
        process.input.watch(&self.poller, stream);
    }

    pub fn on_input_room(&mut self, stream: u32) {
        if let Some(process) = self.processes.get_mut(&stream) {
            process.input.flush();
            self.after_input(stream);
        }
    }

    /// The connection is gone. Processes go on; file calls and programs' connections do not.
    pub fn cut(&mut self) {
        self.link = None;
        self.drop_sockets();
        self.gateway.listen(&self.poller, false);
        self.held_back = false;
        self.calls.cut();
        self.wall.forget_request();
        for process in self.processes.values_mut() {
            process.enlisted = false;
            process.told = false;
            if let Some(starting) = &mut process.starting {
                starting.call = 0;
            }
        }
    }

    /// A new connection of the daemon: every stream goes on from where it has stored it.
    pub fn resume(&mut self, received: &[crate::proto::link::StreamPosition]) -> Result<(), Broken> {
        for process in self.processes.values_mut() {
            let position = received.iter().find(|position| position.stream == process.stream);
            let position = position.map_or(process.output.acknowledged(), |position| position.position);
            if !process.output.resume(position) {
                return Err(Broken("a position beyond the output"));
            }
            process.input.resume();
            rewatch(&self.poller, process);
        }
        Ok(())
    }

    pub fn enlist_all(&mut self) {
        for process in self.processes.values_mut() {
            enlist(self.link.as_mut(), process);
        }
    }
}
