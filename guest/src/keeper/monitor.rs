//! Passing a descriptor to a machine's monitor, which takes them only this way (QMP `add-fd`).

use std::{
    io::{BufRead, BufReader, IoSlice, Read, Write},
    mem::MaybeUninit,
    os::{fd::AsFd, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
};

use super::{failure::Failure, socket};
use crate::proto::keeper::{GiveToMonitor, Given, keeper_reply::Reply};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The machine may have been taken over: what it says is bounded.
const MAX_SAID: u64 = 256 * 1024;

/// In a worker.
pub fn give_to_monitor(request: &GiveToMonitor) -> Result<Reply, Failure> {
    if request.set == 0 {
        return Err(Failure::new("INVALID_INPUT", "a set of descriptors has a number"));
    }
    // What is opened from a set has to be opened as it was put there.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(&request.path, flags, Mode::from_raw_mode(0o600))
        .map_err(|errno| Failure::errno("SANDBOX_FAILED", "opening the file for a machine's state", errno))?;
    let connected = socket::connected(Path::new(&request.socket))
        .map_err(|errno| Failure::errno("GUEST_LOST", "connecting to the machine's monitor", errno))?;
    talk(UnixStream::from(connected), request.set, file.as_fd())
        .map_err(|error| Failure::new("GUEST_LOST", format!("the machine's monitor: {error}")))?;
    Ok(Reply::Given(Given {}))
}

fn talk(mut stream: UnixStream, set: u32, file: impl AsFd) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let mut answers = BufReader::new(stream.try_clone()?.take(MAX_SAID));
    stream.write_all(b"{\"execute\":\"qmp_capabilities\"}\n")?;
    returned(&mut answers)?;
    let command = format!("{{\"execute\":\"add-fd\",\"arguments\":{{\"fdset-id\":{set}}}}}\n");
    let descriptors = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(&stream, &[IoSlice::new(command.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL)?;
    returned(&mut answers)
}

/// Passes over the greeting and events.
fn returned(answers: &mut impl BufRead) -> std::io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if answers.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("it closed the connection"));
        }
        if line.starts_with("{\"return\"") {
            return Ok(());
        }
        if line.starts_with("{\"error\"") {
            return Err(std::io::Error::other(line.trim().to_owned()));
        }
    }
}
