//! The guest as its daemon sees it: each test has a PID 1 of its own, without a wall, and plays the daemon.

mod calls;
mod ending;
mod host;
mod output;
mod resuming;
mod sealing;
mod starting;
mod timing;
mod waiting;

use std::{
    os::{fd::AsFd, unix::net::UnixListener},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use super::guest::Hooks;
use crate::{
    egress::listeners::Listeners,
    proto::link,
    sys::testing::Inmate,
    wall::{Prepared, SealError},
};
use host::Host;

/// A guest and the socket it listens on.
pub struct Sandbox {
    directory: PathBuf,
    inmate: Option<Inmate>,
}

impl Sandbox {
    pub fn start() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let name = format!("caisson-test-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join("link.sock")).unwrap();
        let inmate = Inmate::start(listener.as_fd(), |door| {
            super::serve(
                door,
                Hooks {
                    listen: Listeners::default,
                    prepare: |_| Ok(Prepared::default()),
                    seal: fake_seal,
                    serve: calls::fake_serve,
                },
            )
        });
        Self { directory, inmate: Some(inmate.unwrap()) }
    }

    /// A connection that has said hello.
    pub fn connect(&self) -> Host {
        Host::connect(&self.directory.join("link.sock"), link::host_hello::Role::Host, &[])
    }

    pub fn broker(&self) -> Host {
        Host::connect(&self.directory.join("link.sock"), link::host_hello::Role::Broker, &[])
    }

    /// A connection that goes on where one before was cut.
    pub fn reconnect(&self, before: Host) -> Host {
        let received = before.positions();
        let mut host = Host::connect(&self.directory.join("link.sock"), link::host_hello::Role::Host, &received);
        host.take_over(before);
        host
    }

    /// A guest that is sealed and the connection to it.
    pub fn sealed() -> (Self, Host) {
        let sandbox = Self::start();
        let mut host = sandbox.connect();
        let answer = host.call(link::host_control::Message::Seal(seal()));
        assert!(matches!(answer.message, Some(link::guest_control::Message::Sealed(_))), "{answer:?}");
        (sandbox, host)
    }

    pub fn exit_code(mut self) -> i32 {
        self.inmate.take().unwrap().wait()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.inmate.take());
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub fn seal() -> link::Seal {
    link::Seal { user: "agent".into(), home: "/tmp".into(), workdir: "/tmp".into(), ..Default::default() }
}

/// Stands for the wall; a hostname asks it to fail.
fn fake_seal(
    seal: &link::Seal,
    _: Prepared,
    mounts: Vec<std::os::fd::OwnedFd>,
    keep: &[i32],
) -> Result<Vec<link::Hold>, SealError> {
    assert!(keep.len() >= 4);
    if seal.hostname == "fail" {
        return Err(SealError { step: 78, message: "no Landlock".into() });
    }
    // Commands get a filter, which takes this or privileges.
    rustix::thread::set_no_new_privs(true).unwrap();
    let detail = mounts.len().to_string();
    drop(mounts);
    // As the wall does: by number, whoever thinks that it owns one.
    for number in (3..64).filter(|number| !keep.contains(number)) {
        crate::sys::descriptors::close_range(number as u32, number as u32).unwrap();
    }
    Ok(vec![link::Hold { name: "mounts".into(), enforced: true, by: "test".into(), detail }])
}
