//! The keeper's loop: one thread, everything by readiness.

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
    time::Instant,
};

use prost::Message;
use rustix::{
    event::epoll::EventFlags,
    io::{Errno, ioctl_fionbio, read, write},
    process::{WaitOptions, waitpid},
    stdio::{stdin, stdout},
};

use super::{
    attach::attach,
    events::Events,
    failure::Failure,
    handed::Memories,
    identify::identify,
    launch::{self, Starting},
    machine_memory::keep_memory,
    monitor::give_to_monitor,
    privilege::is_host_root,
    tree::{remove_tree, tree_size},
    watch::Watched,
    wire::{Inbox, framed},
    worker::{Standby, Worker},
};
use crate::proto::keeper::{
    Adopt, Adopted, Attach, KeepMemory, KeeperReply, KeeperRequest, Launch, Launched, keeper_reply::Reply,
    keeper_request::Request,
};

/// What the loop waits for.
enum Waiting {
    Requests,
    RoomForReplies,
    Worker(Worker),
    Starting(u32, Starting),
    /// The end of this sandbox's outer process.
    End(String, Rc<OwnedFd>),
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Requests => stdin(),
            Self::RoomForReplies => stdout(),
            Self::Worker(worker) => worker.pipe.as_fd(),
            Self::Starting(_, starting) => starting.status.as_fd(),
            Self::End(_, process) => process.as_fd(),
        }
    }
}

pub struct Keeper {
    events: Events<Waiting>,
    inbox: Inbox,
    outbox: Vec<u8>,
    sandboxes: HashMap<String, Watched>,
    /// Takes the next mounts that are to be handed in.
    standby: Option<Standby>,
    memories: Memories,
}

impl Keeper {
    pub fn new() -> Result<Self, Errno> {
        ioctl_fionbio(stdin(), true)?;
        ioctl_fionbio(stdout(), true)?;
        is_host_root();
        let mut events = Events::new()?;
        events.add(Waiting::Requests, EventFlags::IN)?;
        Ok(Self {
            events,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            sandboxes: HashMap::new(),
            standby: None,
            memories: Memories::default(),
        })
    }

    /// Until the daemon closes its end; the sandboxes live on.
    pub fn run(&mut self) -> Result<(), Errno> {
        loop {
            let deadline = self.sandboxes.values().filter_map(Watched::outer_deadline).min();
            for waiting in self.events.wait(deadline)? {
                match waiting {
                    Waiting::Requests => {
                        if !self.read_requests()? {
                            return Ok(());
                        }
                    }
                    Waiting::RoomForReplies => self.flush()?,
                    Waiting::Worker(worker) => self.hear(worker)?,
                    Waiting::Starting(id, starting) => self.started(id, starting)?,
                    Waiting::End(sandbox, _) => self.ended(&sandbox)?,
                }
            }
            let now = Instant::now();
            for watched in self.sandboxes.values_mut().filter(|it| it.outer_deadline().is_some_and(|at| at <= now)) {
                watched.kill_outer();
            }
        }
    }

    /// False when the daemon is gone, or says what no daemon would.
    fn read_requests(&mut self) -> Result<bool, Errno> {
        let mut buffer = [0; 16384];
        match read(stdin(), &mut buffer) {
            Ok(0) | Err(Errno::CONNRESET) => return Ok(false),
            Ok(count) => self.inbox.push(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        loop {
            match self.inbox.next_request() {
                Ok(Some(request)) => self.handle(request)?,
                Ok(None) => break,
                Err(why) => {
                    eprintln!("caisson keeper: {why}");
                    return Ok(false);
                }
            }
        }
        self.events.add(Waiting::Requests, EventFlags::IN)?;
        Ok(true)
    }

    fn handle(&mut self, KeeperRequest { id, request }: KeeperRequest) -> Result<(), Errno> {
        match request {
            None => self.fail(id, Failure::new("INVALID_INPUT", "the request is of no known kind")),
            Some(Request::Launch(launch)) => self.launch(id, launch),
            Some(Request::Adopt(adopt)) => self.adopt(id, adopt),
            Some(Request::Kill(kill)) => self.kill(id, &kill.sandbox),
            Some(Request::Attach(request)) => self.attach(id, request),
            Some(Request::RemoveTree(request)) => self.work(id, || remove_tree(&request.path)),
            Some(Request::TreeSize(request)) => self.work(id, || tree_size(&request.path)),
            Some(Request::Identify(_)) => self.work(id, identify),
            Some(Request::GiveToMonitor(request)) => self.work(id, || give_to_monitor(&request)),
            Some(Request::KeepMemory(request)) => self.keep_memory(id, &request),
        }
    }

    fn launch(&mut self, id: u32, launch: Launch) -> Result<(), Errno> {
        if self.sandboxes.contains_key(&launch.sandbox) {
            return self.fail(id, Failure::new("INVALID_INPUT", "a sandbox of that name is running"));
        }
        match launch::begin(launch, &mut self.memories) {
            Err(failure) => self.fail(id, failure),
            Ok(starting) => self.events.add(Waiting::Starting(id, starting), EventFlags::IN),
        }
    }

    fn started(&mut self, id: u32, starting: Starting) -> Result<(), Errno> {
        if let Err(failure) = starting.outcome() {
            let _ = waitpid(Some(starting.pid), WaitOptions::empty());
            return self.fail(id, failure);
        }
        let Starting { sandbox, pid, start_time, .. } = starting;
        self.watch(Watched::launched(sandbox, pid)?)?;
        self.answer(id, Reply::Launched(Launched { pid: pid.as_raw_nonzero().get() as u32, start_time }))?;
        self.stand_by();
        Ok(())
    }

    fn adopt(&mut self, id: u32, adopt: Adopt) -> Result<(), Errno> {
        let known = self.sandboxes.get(&adopt.sandbox).map(|watched| watched.number() == adopt.pid as i32);
        let alive = match known {
            Some(same) => same,
            None => match Watched::adopted(adopt.sandbox, adopt.pid as i32, adopt.start_time) {
                None => false,
                Some(watched) => self.watch(watched).map(|()| true)?,
            },
        };
        self.answer(id, Reply::Adopted(Adopted { alive }))
    }

    fn watch(&mut self, watched: Watched) -> Result<(), Errno> {
        self.events.add(Waiting::End(watched.sandbox.clone(), watched.outer()), EventFlags::IN)?;
        self.sandboxes.insert(watched.sandbox.clone(), watched);
        Ok(())
    }

    fn kill(&mut self, id: u32, sandbox: &str) -> Result<(), Errno> {
        match self.sandboxes.get_mut(sandbox) {
            None => self.fail(id, Failure::new("SANDBOX_NOT_FOUND", "no such sandbox is running")),
            Some(watched) => {
                watched.kill(id);
                Ok(())
            }
        }
    }

    /// Said to everybody who asked for it, and once without being asked.
    fn ended(&mut self, sandbox: &str) -> Result<(), Errno> {
        let Some(watched) = self.sandboxes.remove(sandbox) else { return Ok(()) };
        self.memories.prune();
        let (ended, askers) = watched.end();
        for id in [0].into_iter().chain(askers) {
            self.answer(id, Reply::Ended(ended.clone()))?;
        }
        Ok(())
    }

    fn work(&mut self, id: u32, work: impl FnOnce() -> Result<Reply, Failure>) -> Result<(), Errno> {
        match Worker::start(id, work) {
            Err(errno) => self.fail(id, Failure::errno("UNAVAILABLE", "starting a worker", errno)),
            Ok(worker) => self.events.add(Waiting::Worker(worker), EventFlags::IN),
        }
    }

    fn keep_memory(&mut self, id: u32, request: &KeepMemory) -> Result<(), Errno> {
        let Some(outer) = self.sandboxes.get(&request.sandbox).map(Watched::number) else {
            return self.fail(id, Failure::new("SANDBOX_NOT_FOUND", "no such sandbox is running"));
        };
        self.memories.prune();
        let held = if request.held { self.memories.hold(&request.path).map(Some) } else { Ok(None) };
        match held {
            Ok(held) => self.work(id, || keep_memory(outer, request, held.as_deref())),
            Err(errno) => self.fail(id, Failure::errno("SANDBOX_FAILED", "holding a machine's memory", errno)),
        }
    }

    fn attach(&mut self, id: u32, request: Attach) -> Result<(), Errno> {
        let Some(standby) = self.standby.take() else { return self.work(id, || attach(&request)) };
        let message = KeeperRequest { id, request: Some(Request::Attach(request)) };
        match standby.begin(id, &message.encode_to_vec()) {
            Ok(worker) => self.events.add(Waiting::Worker(worker), EventFlags::IN),
            Err(standby) => {
                standby.dismiss();
                let Some(Request::Attach(request)) = message.request else { return Ok(()) };
                self.work(id, || attach(&request))
            }
        }
    }

    /// Somebody will soon want to hand mounts in. Without a standby it takes a moment longer.
    fn stand_by(&mut self) {
        if self.standby.is_none() && !self.sandboxes.is_empty() {
            self.standby = Standby::new(attach_one).ok();
        }
    }

    fn hear(&mut self, mut worker: Worker) -> Result<(), Errno> {
        match worker.hear() {
            Some(reply) => {
                self.send(&reply)?;
                self.events.add(Waiting::Worker(worker), EventFlags::IN)
            }
            None => {
                let ended = worker.end();
                self.stand_by();
                match ended {
                    Ok(()) => Ok(()),
                    Err(failure) => self.fail(worker.id, failure),
                }
            }
        }
    }

    fn fail(&mut self, id: u32, failure: Failure) -> Result<(), Errno> {
        self.send(&framed(&failure.reply(id)))
    }

    fn answer(&mut self, id: u32, reply: Reply) -> Result<(), Errno> {
        self.send(&framed(&KeeperReply { id, failure: None, reply: Some(reply) }))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let waits_for_room = !self.outbox.is_empty();
        self.outbox.extend_from_slice(bytes);
        if waits_for_room { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        while !self.outbox.is_empty() {
            match write(stdout(), &self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.events.add(Waiting::RoomForReplies, EventFlags::OUT),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// In a standby.
fn attach_one(message: &[u8]) -> (u32, Result<Reply, Failure>) {
    match KeeperRequest::decode(message) {
        Ok(KeeperRequest { id, request: Some(Request::Attach(request)) }) => (id, attach(&request)),
        _ => (0, Err(Failure::new("INTERNAL", "a standby was asked for something else"))),
    }
}
