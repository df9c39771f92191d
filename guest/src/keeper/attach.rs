//! Handing mounts to a guest: a broker, fresh for each request, because a mount namespace made
//! earlier would show what lies below mounts made since.

use std::{
    io::{IoSlice, Read},
    mem::MaybeUninit,
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

use prost::Message;
use rustix::{
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    thread::UnshareFlags,
};

use super::{
    failure::Failure,
    privilege::is_host_root,
    socket,
    sources::{Prepared, Preparer},
};
use crate::{
    frame::{Broken, HEADER_BYTES, Header, Kind, push_control},
    proto::{
        keeper::{Attach, Attached, keeper_reply::Reply},
        link::{GuestControl, HostControl, HostHello, Mounts, guest_control, host_control, host_hello::Role},
    },
    rules::LINK_VERSION,
    sys::unshare::unshare,
};

/// The most descriptors that the kernel passes in one message.
const MAX_SOURCES: usize = 253;
/// A guest answers in a fraction of a millisecond; one that does not is lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const HELLO: u32 = 1;
const MOUNTS: u32 = 2;

/// In a worker.
pub fn attach(request: &Attach) -> Result<Reply, Failure> {
    if request.sources.len() > MAX_SOURCES {
        return Err(Failure::new("TOO_LARGE", format!("at most {MAX_SOURCES} mounts can be handed in")));
    }
    let socket = socket::connected(Path::new(&request.socket))
        .map_err(|errno| Failure::errno("GUEST_LOST", "connecting to the guest", errno))?;
    let mut stream = UnixStream::from(socket);
    let prepared = prepare(request)?;
    hand_over(&mut stream, &prepared)?;
    let attachments = prepared.into_iter().map(|prepared| prepared.attachment).collect();
    Ok(Reply::Attached(Attached { attachments }))
}

fn prepare(request: &Attach) -> Result<Vec<Prepared>, Failure> {
    if !is_host_root() {
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
            .map_err(|errno| Failure::errno("NO_DRIVER", "making a mount namespace", errno))?;
    }
    let sandbox = (is_host_root() && request.uid != 0).then_some((request.uid, request.gid));
    let mut preparer = Preparer::new(sandbox);
    request.sources.iter().map(|source| preparer.prepare(source)).collect()
}

/// Says hello, passes the descriptors with the message that counts them, and waits for the guest's word.
fn hand_over(stream: &mut UnixStream, prepared: &[Prepared]) -> Result<(), Failure> {
    let lost = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Failure::new("DEADLINE_EXCEEDED", "the guest did not take the mounts in time")
        }
        _ => Failure::new("GUEST_LOST", format!("handing mounts to the guest: {error}")),
    };
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(lost)?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(lost)?;

    let hello = HostHello { role: Role::Broker.into(), version: LINK_VERSION as u32, ..Default::default() };
    let count = prepared.len() as u32;
    let hello = control(HELLO, host_control::Message::Hello(hello));
    let mounts = control(MOUNTS, host_control::Message::Mounts(Mounts { count }));
    let descriptors: Vec<_> = prepared.iter().map(|prepared| prepared.mount.as_fd()).collect();
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOURCES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    std::io::Write::write_all(stream, &hello).map_err(lost)?;
    let sent = sendmsg(&*stream, &[IoSlice::new(&mounts)], &mut ancillary, SendFlags::NOSIGNAL)
        .map_err(|errno| lost(errno.into()))?;
    if sent != mounts.len() {
        return Err(Failure::new("GUEST_LOST", "the guest did not take the mounts"));
    }
    loop {
        let answer = read_control(stream).map_err(lost)?;
        if let Some(failure) = answer.failure {
            return Err(Failure { code: failure.code, message: failure.message, errno: failure.errno as i32 });
        }
        if answer.id == MOUNTS && matches!(answer.message, Some(guest_control::Message::Done(_))) {
            let _ = stream.shutdown(Shutdown::Both);
            return Ok(());
        }
    }
}

fn control(id: u32, message: host_control::Message) -> Vec<u8> {
    let mut frame = Vec::new();
    push_control(&mut frame, &HostControl { id, message: Some(message) });
    frame
}

fn read_control(stream: &mut UnixStream) -> std::io::Result<GuestControl> {
    let broken = |_: Broken| std::io::Error::other("the guest broke the rules of the link");
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let header = Header::decode(&header).map_err(broken)?;
    if header.kind != Kind::Control {
        return Err(broken(Broken("only answers are expected")));
    }
    let mut payload = vec![0; header.length];
    stream.read_exact(&mut payload)?;
    GuestControl::decode(payload.as_slice()).map_err(|_| broken(Broken("not a control message")))
}
