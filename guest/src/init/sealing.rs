//! Life before the seal, and the seal itself: it waits for as many descriptors as it names.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{calls::answer, failure::failure, guest::Guest, world::World};
use crate::{
    ctl::note,
    proto::link::{Failure, Hold, Renew, Seal, Sealed, guest_control::Message, mount::Kind},
    wall::{self, Prepared, SealError},
};

/// Descriptors that a sandbox can be given.
pub const MAX_MOUNTS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);
/// A wall that cannot be described to the commands behind it is as good as none.
const STEP_DESCRIPTORS: u8 = 73;
/// The variable that tells commands in which sandbox they are.
const ID: &str = "CAISSON_SANDBOX";

pub type Preparer = fn(&Seal) -> Result<Prepared, SealError>;
pub type Sealer = fn(&Seal, Prepared, Vec<OwnedFd>, &[i32]) -> Result<Vec<Hold>, SealError>;

pub struct Request {
    id: u32,
    seal: Seal,
    prepared: Prepared,
    until: Instant,
}

pub enum Wall {
    Open { mounts: Vec<OwnedFd>, request: Option<Box<Request>> },
    Closed(Box<World>),
}

impl Default for Wall {
    fn default() -> Self {
        Self::Open { mounts: Vec::new(), request: None }
    }
}

impl Wall {
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Open { request: Some(_), .. })
    }

    pub fn world(&self) -> Option<&World> {
        match self {
            Self::Closed(world) => Some(world),
            Self::Open { .. } => None,
        }
    }

    pub fn world_mut(&mut self) -> Option<&mut World> {
        match self {
            Self::Closed(world) => Some(world),
            Self::Open { .. } => None,
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Open { request: Some(request), .. } => Some(request.until),
            _ => None,
        }
    }

    /// From a broker, in the order of the seal's mounts.
    pub fn take_mounts(&mut self, more: Vec<OwnedFd>) -> Result<(), Failure> {
        match self {
            Self::Open { mounts, .. } if mounts.len() + more.len() <= MAX_MOUNTS => {
                mounts.extend(more);
                Ok(())
            }
            Self::Open { .. } => Err(failure("INVALID_INPUT", format!("mounts: at most {MAX_MOUNTS}"))),
            Self::Closed(_) => Err(failure("FORBIDDEN", "the wall is closed")),
        }
    }

    /// Whoever asked for the seal is gone.
    pub fn forget_request(&mut self) {
        if let Self::Open { request, .. } = self {
            *request = None;
        }
    }
}

/// As many descriptors come before the wall is closed.
fn handed_in(seal: &Seal) -> usize {
    seal.mounts.iter().filter(|mount| mount.kind() != Kind::Private).count()
}

impl Guest {
    pub fn on_seal(&mut self, id: u32, seal: Seal) -> Result<(), Failure> {
        let Wall::Open { request, .. } = &mut self.wall else {
            return Err(failure("INVALID_INPUT", "the sandbox is sealed already"));
        };
        if seal.mounts.len() > MAX_MOUNTS {
            return Err(failure("INVALID_INPUT", format!("mounts: at most {MAX_MOUNTS}")));
        }
        let until = Instant::now() + PATIENCE;
        match (self.hooks.prepare)(&seal) {
            Ok(prepared) => *request = Some(Box::new(Request { id, seal, prepared, until })),
            Err(error) => {
                self.give_up(id, error);
                return Ok(());
            }
        }
        self.seal_if_complete();
        Ok(())
    }

    pub fn seal_if_complete(&mut self) {
        let Wall::Open { mounts, request: Some(request) } = &self.wall else { return };
        if mounts.len() >= handed_in(&request.seal) {
            self.seal();
        }
    }

    pub fn seal_if_overdue(&mut self, now: Instant) {
        let Wall::Open { mounts, request: Some(request) } = &self.wall else { return };
        if request.until <= now {
            let (id, had, wanted) = (request.id, mounts.len(), handed_in(&request.seal));
            let message = format!("{had} of {wanted} mounts were handed in within {} s", PATIENCE.as_secs());
            self.give_up(id, SealError { step: 71, message });
        }
    }

    fn seal(&mut self) {
        let Wall::Open { mounts, request: Some(request) } = std::mem::take(&mut self.wall) else { return };
        if mounts.len() > handed_in(&request.seal) {
            let message = "more mounts were handed in than the seal names".into();
            return self.give_up(request.id, SealError { step: 71, message });
        }
        // Nobody else comes in from here on; brokers have their answers.
        self.newcomers.clear();
        let mut keep = vec![self.door.as_raw_fd(), self.children.as_fd().as_raw_fd(), self.poller.as_fd().as_raw_fd()];
        keep.push(self.calls.wake.as_fd().as_raw_fd());
        keep.extend(self.link.as_ref().map(|link| link.fd.as_raw_fd()));
        keep.extend(self.gateway.descriptors());
        let Request { id, seal, prepared, .. } = *request;
        match (self.hooks.seal)(&seal, prepared, mounts, &keep) {
            Ok(mut holds) => {
                holds.push(self.gateway.listeners.hold());
                match self.enter_world(&seal, &holds) {
                    Ok(()) => self.answer(id, Ok(Message::Sealed(Sealed { holds }))),
                    Err(errno) => {
                        let message = format!("/dev/null: {errno}");
                        self.give_up(id, SealError { step: STEP_DESCRIPTORS, message });
                    }
                }
            }
            Err(error) => self.give_up(id, error),
        }
    }

    /// From now on commands can be started.
    fn enter_world(&mut self, seal: &Seal, holds: &[Hold]) -> rustix::io::Result<()> {
        // For people and agents inside; nothing depends on it.
        let note = seal.description.as_ref().and_then(|description| note::write(description, holds).ok());
        let open_files = wall::open_files(self.open_files);
        let world = World::new(seal, &open_files, self.gateway.listeners.has_proxy())?;
        self.wall = Wall::Closed(Box::new(World { note, ..world }));
        self.refill_due = true;
        Ok(())
    }

    /// The sandbox is a copy of one that was closed before anybody asked for it.
    pub fn renew(&mut self, renew: &Renew) -> Result<(), Failure> {
        let unused = self.starts == 0;
        let Some(world) = self.wall.world_mut().filter(|_| unused) else {
            return Err(failure("INVALID_INPUT", "only a sandbox that was never used gets another id"));
        };
        let before = world.environment.insert(ID.into(), renew.sandbox.clone()).unwrap_or_default();
        let Some(note) = &world.note else { return Ok(()) };
        note::rename(note, &before, &renew.sandbox)
            .map_err(|error| failure("INTERNAL", format!("the sandbox's note: {error}")))
    }

    /// Says why and ends: half a wall is none.
    fn give_up(&mut self, id: u32, error: SealError) {
        self.answer(id, Err(failure("SANDBOX_FAILED", error.message)));
        self.flush_before_exit();
        self.exit_code = Some(error.step);
    }

    /// Waits a moment for the last words to be taken.
    pub fn flush_before_exit(&mut self) {
        self.flush();
        let until = Instant::now() + Duration::from_secs(1);
        while let Some(link) = self.link.as_ref().filter(|link| link.has_something_to_write()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut fds = [PollFd::new(&link.fd, PollFlags::OUT)];
            let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            let _ = poll(&mut fds, Some(&limit));
            self.flush();
        }
    }

    pub fn answer(&mut self, id: u32, result: Result<Message, Failure>) {
        if let Some(link) = &mut self.link {
            answer(link, id, result);
        }
    }
}
