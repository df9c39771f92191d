//! Does once, in namespaces that are then ended, what every sandbox does first: closes a wall and runs a command.
//!
//! Before a machine is kept as a template, it leaves in the kernel's memory what a first time would have to read or
//! make. In a copy that waits, it lets an emulator translate the code that will be needed. Nothing else of it stays.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use prost::Message as _;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{chamber, machine::IMAGE};
use crate::{
    frame::{HEADER_BYTES, Header, Kind, push_control},
    init::DEFAULT_PATH,
    keeper::socket,
    proto::link::{
        GuestControl, HostControl, HostHello, Rlimits, Seal, Shutdown, Start, guest_control, host_control::Message,
        host_hello::Role,
    },
    rules::LINK_VERSION,
};

const PLACE: &str = "/run/rehearsal";
const WITHIN: Duration = Duration::from_secs(60);
const TMPFS_BYTES: u64 = 64 << 20;

pub fn rehearse() -> io::Result<()> {
    read_directories();
    let guest = chamber::start(socket::listening(Path::new(PLACE))?)?;
    let played = play();
    end(guest)?;
    fs::remove_file(PLACE)?;
    played
}

/// A program is looked for in each directory of the PATH: none of them is to be read from the disk then.
fn read_directories() {
    for directory in DEFAULT_PATH.split(':') {
        for _ in fs::read_dir(format!("{IMAGE}{directory}")).into_iter().flatten() {}
    }
}

fn play() -> io::Result<()> {
    let mut host = UnixStream::from(socket::connected(Path::new(PLACE))?);
    host.set_read_timeout(Some(WITHIN))?;
    let hello = HostHello { role: Role::Host.into(), version: LINK_VERSION as u32, ..Default::default() };
    let start = Start { stream: 1, argv: words(&["/bin/sh", "-c", "/bin/true; exit 0"]), ..Default::default() };
    let mut said = Vec::new();
    for (id, message) in (1..).zip([Message::Hello(hello), Message::Seal(seal()), Message::Start(start)]) {
        push_control(&mut said, &HostControl { id, message: Some(message) });
    }
    host.write_all(&said)?;
    loop {
        let Some(answer) = hear(&mut host)? else { continue };
        if let Some(failure) = answer.failure {
            return Err(io::Error::other(format!("the rehearsal failed: {}", failure.message)));
        }
        if let Some(guest_control::Message::Exited(_)) = answer.message {
            break;
        }
    }
    said.clear();
    push_control(&mut said, &HostControl { id: 4, message: Some(Message::Shutdown(Shutdown {})) });
    host.write_all(&said)
}

/// As the daemon seals a sandbox without a project.
fn seal() -> Seal {
    Seal {
        hostname: "rehearsal".into(),
        uid: 1000,
        gid: 1000,
        user: "agent".into(),
        home: "/home/agent".into(),
        workdir: "/home/agent".into(),
        env: words(&["PATH=/usr/bin:/bin", "HOME=/home/agent"]),
        tmpfs_bytes: TMPFS_BYTES,
        tmpfs_inodes: TMPFS_BYTES / 4096,
        rlimits: Some(Rlimits { open_files: 1024, processes: 256, ..Default::default() }),
        ..Default::default()
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The next message; none where the frame is something else.
fn hear(host: &mut UnixStream) -> io::Result<Option<GuestControl>> {
    let mut header = [0; HEADER_BYTES];
    host.read_exact(&mut header)?;
    let header = Header::decode(&header).map_err(|broken| io::Error::other(broken.0))?;
    let mut payload = vec![0; header.length];
    host.read_exact(&mut payload)?;
    if header.kind != Kind::Control {
        return Ok(None);
    }
    GuestControl::decode(&payload[..]).map(Some).map_err(io::Error::other)
}

/// It leaves by itself when it is told to; if not, its first process is killed, and everything in it.
fn end(guest: Pid) -> io::Result<()> {
    let until = Instant::now() + Duration::from_secs(5);
    while waitpid(Some(guest), WaitOptions::NOHANG)?.is_none() {
        if Instant::now() > until {
            let number = guest.as_raw_nonzero();
            let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children"))?;
            for child in children.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
                kill_process(child, Signal::KILL)?;
            }
            waitpid(Some(guest), WaitOptions::empty())?;
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
