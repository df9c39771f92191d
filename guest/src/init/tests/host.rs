//! The daemon's side of the link, for tests.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::{
    frame::{Decoder, Kind, Tag, push, push_ack, push_control},
    proto::link::{
        self, Exited, GuestControl, GuestHello, HostControl, HostHello, StreamPosition, guest_control, host_control,
        host_hello::Role,
    },
    rules::LINK_VERSION,
};

/// No test waits longer than this for anything.
const HANG: Duration = Duration::from_secs(60);

/// What has come on a process's stream.
#[derive(Default)]
pub struct Stream {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub position: u64,
    pub exited: Option<Exited>,
    /// Input that the guest has acknowledged.
    pub taken: u64,
    pub ended: bool,
    pub reset: Option<link::Failure>,
}

pub struct Host {
    pub socket: UnixStream,
    decoder: Decoder,
    pub hello: GuestHello,
    pub streams: BTreeMap<u32, Stream>,
    answers: BTreeMap<u32, GuestControl>,
    last_id: u32,
    pub last_stream: u32,
    /// Acknowledge output as it comes, and keep it.
    pub acknowledges: bool,
    pub keeps: bool,
    pub largest_frame: usize,
}

impl Host {
    pub fn connect(path: &Path, role: Role, received: &[StreamPosition]) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        socket.set_write_timeout(Some(HANG)).unwrap();
        let mut host = Self {
            socket,
            decoder: Decoder::default(),
            hello: GuestHello::default(),
            streams: BTreeMap::new(),
            answers: BTreeMap::new(),
            last_id: 0,
            last_stream: 0,
            acknowledges: true,
            keeps: true,
            largest_frame: 0,
        };
        let hello = HostHello { role: role.into(), version: LINK_VERSION as u32, received: received.to_vec() };
        let id = host.send_control(host_control::Message::Hello(hello));
        // A guest that refuses says so, or hangs up.
        while !host.answers.contains_key(&id) {
            if !host.pump() {
                return host;
            }
        }
        let answer = host.answers.remove(&id).unwrap();
        match answer.message {
            Some(guest_control::Message::Hello(hello)) => host.hello = hello,
            _ => {
                host.answers.insert(id, answer);
            }
        }
        host
    }

    /// The answer to a hello that was refused.
    pub fn refusal(&self) -> Option<&link::Failure> {
        self.answers.values().next().and_then(|answer| answer.failure.as_ref())
    }

    pub fn take_over(&mut self, before: Host) {
        self.last_id = before.last_id.max(self.last_id);
        self.last_stream = before.last_stream;
        (self.acknowledges, self.keeps) = (before.acknowledges, before.keeps);
        for (number, mut stream) in before.streams {
            // What came with the hello already belongs behind what was there.
            if let Some(new) = self.streams.remove(&number) {
                stream.stdout.extend(new.stdout);
                stream.stderr.extend(new.stderr);
                stream.position += new.position;
                stream.exited = new.exited.or(stream.exited);
            }
            self.streams.insert(number, stream);
        }
    }

    pub fn positions(&self) -> Vec<StreamPosition> {
        self.streams.iter().map(|(&stream, state)| StreamPosition { stream, position: state.position }).collect()
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn send_control(&mut self, message: host_control::Message) -> u32 {
        self.last_id += 1;
        let mut frame = Vec::new();
        push_control(&mut frame, &HostControl { id: self.last_id, message: Some(message) });
        self.send_bytes(&frame);
        self.last_id
    }

    pub fn data(&mut self, stream: u32, bytes: &[u8]) {
        let mut frame = Vec::new();
        push(&mut frame, Kind::Data, stream, bytes);
        self.send_bytes(&frame);
    }

    pub fn end(&mut self, stream: u32) {
        let mut frame = Vec::new();
        push(&mut frame, Kind::End, stream, &[]);
        self.send_bytes(&frame);
    }

    pub fn reset(&mut self, stream: u32) {
        let mut frame = Vec::new();
        push(&mut frame, Kind::Reset, stream, &[]);
        self.send_bytes(&frame);
    }

    pub fn ack(&mut self, stream: u32, position: u64) {
        let mut frame = Vec::new();
        push_ack(&mut frame, stream, position);
        self.send_bytes(&frame);
    }

    pub fn answer(&mut self, id: u32) -> GuestControl {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            assert!(self.pump(), "the guest hung up");
        }
    }

    pub fn call(&mut self, message: host_control::Message) -> GuestControl {
        let id = self.send_control(message);
        self.answer(id)
    }

    pub fn next_stream(&mut self) -> u32 {
        self.last_stream += 1;
        self.streams.insert(self.last_stream, Stream::default());
        self.last_stream
    }

    /// Starts a command and gives its stream, or why not.
    pub fn start(&mut self, start: link::Start) -> Result<u32, link::Failure> {
        let stream = self.next_stream();
        let answer = self.call(host_control::Message::Start(link::Start { stream, ..start }));
        match answer.message {
            Some(guest_control::Message::Started(started)) => {
                assert!(started.pid > 1);
                Ok(stream)
            }
            _ => {
                self.streams.remove(&stream);
                Err(answer.failure.unwrap())
            }
        }
    }

    pub fn start_shell(&mut self, script: &str) -> u32 {
        self.start(shell(script)).unwrap()
    }

    /// Waits for the exit and forgets the process.
    pub fn finish(&mut self, stream: u32) -> (Exited, Stream) {
        let exited = self.wait(stream);
        let answer = self.call(host_control::Message::Forget(link::Forget { stream }));
        assert_eq!(answer.failure, None);
        (exited, self.streams.remove(&stream).unwrap())
    }

    pub fn wait(&mut self, stream: u32) -> Exited {
        loop {
            if let Some(exited) = self.streams[&stream].exited {
                assert_eq!(exited.position, self.streams[&stream].position, "all output is there before the exit");
                return exited;
            }
            assert!(self.pump(), "the guest hung up");
        }
    }

    pub fn run(&mut self, script: &str) -> (Exited, Stream) {
        let stream = self.start_shell(script);
        self.finish(stream)
    }

    pub fn wait_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            assert!(self.pump(), "the guest hung up");
        }
    }

    /// Takes in the next frame. False when the guest hung up.
    pub fn pump(&mut self) -> bool {
        while !self.take_frame() {
            match self.socket.read(self.decoder.space()) {
                Ok(0) => return false,
                Ok(count) => self.decoder.filled(count),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return false,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
        true
    }

    fn take_frame(&mut self) -> bool {
        let Some(frame) = self.decoder.next().expect("the guest keeps the rules") else { return false };
        if frame.kind == Kind::Control {
            let control: GuestControl = frame.message().unwrap();
            match control.message {
                Some(guest_control::Message::Exited(exited)) if control.id == 0 => {
                    self.streams.entry(exited.stream).or_default().exited = Some(exited);
                }
                _ => {
                    self.answers.insert(control.id, control);
                }
            }
            return true;
        }
        let number = frame.stream;
        let stream = self.streams.entry(number).or_default();
        self.largest_frame = self.largest_frame.max(frame.payload.len());
        match frame.kind {
            Kind::Data => {
                stream.position += frame.payload.len() as u64;
                if self.keeps {
                    let kept = if frame.tag == Tag::Stderr { &mut stream.stderr } else { &mut stream.stdout };
                    kept.extend_from_slice(frame.payload);
                }
                let position = stream.position;
                if self.acknowledges {
                    self.ack(number, position);
                }
            }
            Kind::Ack => stream.taken = frame.position().unwrap(),
            Kind::End => stream.ended = true,
            Kind::Reset => stream.reset = Some(prost::Message::decode(frame.payload).unwrap()),
            Kind::Control => {}
        }
        true
    }
}

pub fn shell(script: &str) -> link::Start {
    command(&["/bin/sh", "-c", script])
}

pub fn command(argv: &[&str]) -> link::Start {
    link::Start { argv: argv.iter().map(|word| word.to_string()).collect(), ..Default::default() }
}
