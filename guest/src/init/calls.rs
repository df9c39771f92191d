//! File calls: each on a thread of its own, so that a slow disk or a slow reader holds up nobody else.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    channel::{CallChannel, Note, Outgoing, Shared, Wake},
    failure::failure,
    link::{Link, Rest, SMALL_PAYLOAD, Turn},
    workers::Workers,
};
use crate::{
    files::Channel,
    frame::{Broken, Kind, Tag, push_ack, push_control},
    proto::link::{FileCall, GuestControl, file_call::Call as Which, guest_control::Message},
    rules::LINK_WINDOW_BYTES,
};

pub type CallNumber = u32;
pub type Serve = fn(FileCall, &mut dyn Channel);

/// Threads at once; further calls wait.
const MAX_RUNNING: usize = 32;
/// Watches last for as long as somebody looks; they have threads of their own.
const MAX_WATCHES: usize = 64;
const MAX_WAITING: usize = 1024;

struct Call {
    /// The control message that this answers.
    id: u32,
    stream: Option<u32>,
    shared: Arc<Shared>,
    enlisted: bool,
    finished: bool,
    /// Positions: received from the daemon, acknowledged to it, sent to it.
    received: u64,
    acknowledged: u64,
    sent: u64,
}

pub struct Calls {
    serve: Serve,
    pub wake: Arc<Wake>,
    calls: HashMap<CallNumber, Call>,
    by_stream: HashMap<u32, CallNumber>,
    waiting: VecDeque<(CallNumber, FileCall)>,
    /// Threads, by whether they watch.
    running: HashMap<CallNumber, bool>,
    workers: Workers,
    last: CallNumber,
}

impl Calls {
    pub fn new(serve: Serve) -> rustix::io::Result<Self> {
        Ok(Self {
            serve,
            wake: Arc::new(Wake::new()?),
            calls: HashMap::new(),
            by_stream: HashMap::new(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            workers: Workers::default(),
            last: 0,
        })
    }

    pub fn has_stream(&self, stream: u32) -> bool {
        self.by_stream.contains_key(&stream)
    }

    /// Starts a call, now or when another has ended.
    pub fn open(&mut self, id: u32, call: FileCall, link: &mut Link) {
        let watches = self.running.values().filter(|watch| **watch).count();
        let full = if is_watch(&call) { watches >= MAX_WATCHES } else { self.waiting.len() >= MAX_WAITING };
        if full {
            return answer(link, id, Err(failure("RATE_LIMITED", "too many file calls at once")));
        }
        self.last = self.last.wrapping_add(1);
        let number = self.last;
        let stream = stream_of(&call);
        let shared = Shared::new(number, self.wake.clone());
        if let Some(stream) = stream {
            self.by_stream.insert(stream, number);
        }
        let (enlisted, finished, received, acknowledged, sent) = (false, false, 0, 0, 0);
        self.calls.insert(number, Call { id, stream, shared, enlisted, finished, received, acknowledged, sent });
        if is_watch(&call) || self.running.len() - watches < MAX_RUNNING {
            self.run(number, call);
        } else {
            self.waiting.push_back((number, call));
        }
    }

    fn run(&mut self, number: CallNumber, call: FileCall) {
        let Some(entry) = self.calls.get(&number) else { return };
        let (shared, sends, serve) = (entry.shared.clone(), sends(&call), self.serve);
        self.running.insert(number, is_watch(&call));
        let in_thread = shared.clone();
        if self.workers.run(move || serve(call, &mut CallChannel::new(in_thread, sends))).is_err() {
            let _ = CallChannel::new(shared, sends).reply(Err(failure("UNAVAILABLE", "no room for another thread")));
        }
    }

    /// DATA from the daemon.
    pub fn data(&mut self, stream: u32, bytes: &[u8]) -> Result<(), Broken> {
        let Some(call) = self.by_stream.get(&stream).and_then(|number| self.calls.get_mut(number)) else {
            return Ok(());
        };
        call.received += bytes.len() as u64;
        if call.received - call.acknowledged > LINK_WINDOW_BYTES as u64 {
            return Err(Broken("DATA beyond the window"));
        }
        if !bytes.is_empty() {
            call.shared.lock().incoming.push_back(bytes.to_vec());
            call.shared.notify();
        }
        Ok(())
    }

    pub fn end(&mut self, stream: u32) {
        if let Some(call) = self.by_stream.get(&stream).and_then(|number| self.calls.get(number)) {
            call.shared.lock().incoming_ended = true;
            call.shared.notify();
        }
    }

    pub fn acknowledge(&mut self, stream: u32, position: u64) -> Result<(), Broken> {
        if let Some(call) = self.by_stream.get(&stream).and_then(|number| self.calls.get(number)) {
            if position > call.sent {
                return Err(Broken("ACK beyond what was sent"));
            }
            let mut state = call.shared.lock();
            state.acknowledged = state.acknowledged.max(position);
            call.shared.notify();
        }
        Ok(())
    }

    /// The daemon gave the stream up.
    pub fn reset(&mut self, stream: u32) {
        if let Some(number) = self.by_stream.remove(&stream) {
            self.waiting.retain(|(waiting, _)| *waiting != number);
            if let Some(call) = self.calls.remove(&number) {
                call.shared.close();
            }
        }
    }

    /// The link was cut: no file stream survives that. Threads end by themselves.
    pub fn cut(&mut self) {
        self.waiting.clear();
        self.by_stream.clear();
        for (_, call) in self.calls.drain() {
            call.shared.close();
        }
    }

    /// Takes the threads' news.
    pub fn on_wake(&mut self, mut link: Option<&mut Link>) {
        for note in self.wake.take() {
            let number = match note {
                Note::Changed(number) => number,
                Note::Finished(number) => {
                    self.running.remove(&number);
                    number
                }
            };
            if let (Some(call), Some(link)) = (self.calls.get_mut(&number), link.as_deref_mut()) {
                call.finished |= matches!(note, Note::Finished(_));
                call.enlist_or_acknowledge(number, link);
            }
            self.drop_if_done(number);
        }
        while self.running.values().filter(|watch| !**watch).count() < MAX_RUNNING {
            let Some((number, call)) = self.waiting.pop_front() else { break };
            self.run(number, call);
        }
    }

    /// One turn of a call on the link.
    pub fn send(&mut self, number: CallNumber, link: &mut Link) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.enlisted = false;
        let next = call.shared.lock().outgoing.pop_front();
        let stream = call.stream.unwrap_or_default();
        match next {
            Some(Outgoing::Reply(reply)) => {
                let (failure, message) = match reply {
                    Ok(reply) => (None, Some(Message::File(reply))),
                    Err(failure) => (Some(failure), None),
                };
                let answer = GuestControl { id: call.id, failure, message };
                link.push_encoded(|wire| push_control(wire, &answer));
            }
            // A call without a stream has nowhere to send content.
            Some(_) if stream == 0 => {}
            Some(Outgoing::Data(bytes)) => {
                call.sent += bytes.len() as u64;
                if bytes.len() <= SMALL_PAYLOAD {
                    link.push(Kind::Data, stream, Tag::None, [&bytes, &[]]);
                } else {
                    link.push_header(Kind::Data, stream, Tag::None, bytes.len());
                    link.rest = Rest::Owned { bytes, at: 0 };
                }
            }
            Some(Outgoing::End) => link.push(Kind::End, stream, Tag::None, [&[], &[]]),
            Some(Outgoing::Reset(failure)) => {
                let payload = prost::Message::encode_to_vec(&failure);
                link.push(Kind::Reset, stream, Tag::None, [&payload, &[]]);
            }
            None => {}
        }
        call.enlist_or_acknowledge(number, link);
        self.drop_if_done(number);
    }

    fn drop_if_done(&mut self, number: CallNumber) {
        let Some(call) = self.calls.get(&number) else { return };
        if call.finished && call.shared.lock().outgoing.is_empty() {
            if let Some(stream) = call.stream {
                self.by_stream.remove(&stream);
            }
            self.calls.remove(&number);
        }
    }
}

impl Call {
    fn enlist_or_acknowledge(&mut self, number: CallNumber, link: &mut Link) {
        let state = self.shared.lock();
        if !state.outgoing.is_empty() && !self.enlisted {
            self.enlisted = true;
            link.ready.push_back(Turn::Call(number));
        }
        if let (true, Some(stream)) = (state.taken > self.acknowledged, self.stream) {
            self.acknowledged = state.taken;
            push_ack(&mut link.control, stream, state.taken);
        }
    }
}

pub fn answer(link: &mut Link, id: u32, result: Result<Message, crate::proto::link::Failure>) {
    if id != 0 {
        let (failure, message) = match result {
            Ok(message) => (None, Some(message)),
            Err(failure) => (Some(failure), None),
        };
        push_control(&mut link.control, &GuestControl { id, failure, message });
    }
}

/// The stream that a call names, if its kind has one.
pub fn stream_of(call: &FileCall) -> Option<u32> {
    match call.call.as_ref()? {
        Which::Read(call) => Some(call.stream),
        Which::Write(call) => Some(call.stream),
        Which::List(call) => Some(call.stream),
        Which::Watch(call) => Some(call.stream),
        Which::Unpack(call) => Some(call.stream),
        Which::Pack(call) => Some(call.stream),
        Which::Stat(_) | Which::Mkdir(_) | Which::Move(_) | Which::Remove(_) => None,
    }
}

/// Whether content follows the reply.
fn sends(call: &FileCall) -> bool {
    matches!(call.call, Some(Which::Read(_) | Which::List(_) | Which::Watch(_) | Which::Pack(_)))
}

fn is_watch(call: &FileCall) -> bool {
    matches!(call.call, Some(Which::Watch(_)))
}
