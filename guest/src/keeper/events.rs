//! What the loop waits for: things with a descriptor.

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{Timespec, epoll},
    io::Errno,
};

pub struct Events<T> {
    epoll: OwnedFd,
    things: HashMap<u64, T>,
    next: u64,
    ready: Vec<epoll::Event>,
}

impl<T: AsFd> Events<T> {
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, things: HashMap::new(), next: 0, ready: Vec::with_capacity(64) })
    }

    /// `thing` comes back from `wait`, once, when its descriptor is ready.
    pub fn add(&mut self, thing: T, flags: epoll::EventFlags) -> Result<(), Errno> {
        self.next += 1;
        epoll::add(&self.epoll, &thing, epoll::EventData::new_u64(self.next), flags)?;
        self.things.insert(self.next, thing);
        Ok(())
    }

    /// The things that are ready; none when the deadline has come.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Vec<T>, Errno> {
        self.ready.clear();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.ready), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let things: Vec<T> = self.ready.iter().filter_map(|event| self.things.remove(&event.data.u64())).collect();
        for thing in &things {
            epoll::delete(&self.epoll, thing)?;
        }
        Ok(things)
    }
}
