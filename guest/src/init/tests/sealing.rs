use std::{
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{
    Sandbox,
    host::{Host, shell},
    seal,
};
use crate::{
    frame::{Kind, push, push_control},
    proto::link::{self, HostControl, guest_control, host_control::Message},
};

/// Sends a `mounts` frame with descriptors.
fn hand_in(broker: &mut Host, count: u32, descriptors: &[BorrowedFd<'_>]) -> u32 {
    let mut frame = Vec::new();
    let mounts = HostControl { id: 77, message: Some(Message::Mounts(link::Mounts { count })) };
    push_control(&mut frame, &mounts);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    sendmsg(&broker.socket, &[IoSlice::new(&frame)], &mut control, SendFlags::empty()).unwrap();
    77
}

fn with_mounts(count: usize) -> link::Seal {
    link::Seal { mounts: vec![link::Mount::default(); count], ..seal() }
}

fn holds(answer: &link::GuestControl) -> &link::Hold {
    match &answer.message {
        Some(guest_control::Message::Sealed(sealed)) => &sealed.holds[0],
        other => panic!("{other:?} {:?}", answer.failure),
    }
}

#[test]
fn an_unsealed_guest_serves_little() {
    let sandbox = Sandbox::start();
    let mut host = sandbox.connect();
    assert!(!host.hello.sealed);
    assert_eq!(host.hello.window, 1 << 20);
    let refused = host.start(super::host::command(&["true"])).unwrap_err();
    assert_eq!(refused.code, "INVALID_INPUT");
    assert!(host.call(Message::Ping(link::Ping { token: 1 })).failure.is_none());
    let from_host = host.call(Message::Mounts(link::Mounts { count: 0 }));
    assert_eq!(from_host.failure.unwrap().code, "INVALID_INPUT");
}

#[test]
fn mounts_may_come_before_or_after_the_seal() {
    let null = std::fs::File::open("/dev/null").unwrap();
    for first in [true, false] {
        let sandbox = Sandbox::start();
        let mut host = sandbox.connect();
        let mut asked = 0;
        if !first {
            asked = host.send_control(Message::Seal(with_mounts(3)));
        }
        let mut broker = sandbox.broker();
        let id = hand_in(&mut broker, 2, &[null.as_fd(), null.as_fd()]);
        assert!(broker.answer(id).failure.is_none());
        let mut second = sandbox.broker();
        let id = hand_in(&mut second, 1, &[null.as_fd()]);
        assert!(second.answer(id).failure.is_none());
        if first {
            asked = host.send_control(Message::Seal(with_mounts(3)));
        }
        // Sent without waiting: handled in order.
        let stream = host.next_stream();
        let start = link::Start { stream, ..super::host::shell("echo started") };
        let started = host.send_control(Message::Start(start));
        assert_eq!(holds(&host.answer(asked)).detail, "3");
        assert!(host.answer(started).failure.is_none());
        assert_eq!(host.finish(stream).1.stdout, b"started\n");
        let late = sandbox.broker();
        assert_eq!(late.refusal().unwrap().code, "FORBIDDEN");
        let again = host.call(Message::Seal(seal()));
        assert_eq!(again.failure.unwrap().code, "INVALID_INPUT");
    }
}

#[test]
fn a_broker_that_stays_is_cut_by_the_seal_and_what_it_sent_is_dropped() {
    let sandbox = Sandbox::start();
    let mut host = sandbox.connect();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut broker = sandbox.broker();
    // A descriptor without the message that would speak for it.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [writer.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&broker.socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty()).unwrap();
    drop(writer);
    assert_eq!(holds(&host.call(Message::Seal(seal()))).detail, "0");
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the guest holds what was not handed in");
    assert!(!broker.pump(), "the broker is still connected");
    // The numbers that it had belong to others now, and nobody closes them a second time.
    for _ in 0..3 {
        assert_eq!(host.run("echo out; echo err >&2").1.stdout, b"out\n");
    }
}

#[test]
fn a_broker_whose_count_is_wrong_is_refused() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let sandbox = Sandbox::start();
    let mut broker = sandbox.broker();
    let id = hand_in(&mut broker, 2, &[null.as_fd()]);
    assert_eq!(broker.answer(id).failure.unwrap().code, "INVALID_INPUT");
    let mut many = sandbox.broker();
    hand_in(&mut many, 80, &vec![null.as_fd(); 80]);
    assert!(!many.pump(), "too many descriptors end the connection");
    let mut host = sandbox.connect();
    let answer = host.call(Message::Seal(seal()));
    assert_eq!(holds(&answer).detail, "0");
}

#[test]
fn a_seal_whose_mounts_never_come_fails_with_its_step() {
    let sandbox = Sandbox::start();
    let mut host = sandbox.connect();
    let answer = host.call(Message::Seal(with_mounts(1)));
    assert_eq!(answer.failure.unwrap().code, "SANDBOX_FAILED");
    assert!(!host.pump());
    assert_eq!(sandbox.exit_code(), 71);
}

#[test]
fn a_wall_that_does_not_close_ends_the_guest_with_its_step() {
    let sandbox = Sandbox::start();
    let mut host = sandbox.connect();
    let answer = host.call(Message::Seal(link::Seal { hostname: "fail".into(), ..seal() }));
    assert_eq!(answer.failure.unwrap().message, "no Landlock");
    assert_eq!(sandbox.exit_code(), 78);
}

#[test]
fn another_version_is_refused() {
    let sandbox = Sandbox::start();
    let mut host = sandbox.connect();
    let hello = link::HostHello { role: 1, version: 1, received: Vec::new() };
    host.send_control(Message::Hello(hello));
    assert!(!host.pump(), "a second hello breaks the rules");
    let mut frame = Vec::new();
    let hello = link::HostHello { role: 1, version: 99, received: Vec::new() };
    push_control(&mut frame, &HostControl { id: 3, message: Some(Message::Hello(hello)) });
    let mut socket = std::os::unix::net::UnixStream::connect(sandbox.directory.join("link.sock")).unwrap();
    std::io::Write::write_all(&mut socket, &frame).unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut socket, &mut answer).unwrap();
    assert!(answer.windows(16).any(|bytes| bytes == b"VERSION_MISMATCH"));
}

#[test]
fn broken_frames_end_the_connection_and_nothing_else() {
    let (sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("sleep 0.5; echo alive");
    let mut broken: Vec<Vec<u8>> = vec![vec![0xff; 12], vec![0; 12]];
    let frame = |kind: Kind, stream: u32, payload: &[u8]| {
        let mut bytes = Vec::new();
        push(&mut bytes, kind, stream, payload);
        bytes
    };
    broken.push(frame(Kind::Control, 0, &[0xff; 5]));
    broken.push(frame(Kind::Control, 0, &[]));
    broken.push(frame(Kind::Data, 1000, b"never opened"));
    broken.push(frame(Kind::Ack, stream, &u64::MAX.to_le_bytes()));
    let mut tagged = frame(Kind::Data, stream, b"x");
    tagged[9] = 1;
    broken.push(tagged);
    for bytes in broken {
        host.send_bytes(&bytes);
        while host.pump() {}
        host = sandbox.reconnect(host);
    }
    assert_eq!(host.finish(stream).1.stdout, b"alive\n");
}

#[test]
fn shutting_down_ends_everything() {
    let (sandbox, mut host) = Sandbox::sealed();
    host.start_shell("sleep 1000");
    let answer = host.call(Message::Shutdown(link::Shutdown {}));
    assert!(answer.failure.is_none());
    assert_eq!(sandbox.exit_code(), 0);
}

#[test]
fn only_a_sandbox_that_was_never_used_gets_another_id() {
    let renew = || Message::Renew(link::Renew { sandbox: "sb_other".into() });
    let unsealed = Sandbox::start();
    assert_eq!(unsealed.connect().call(renew()).failure.unwrap().code, "INVALID_INPUT");
    let (_sandbox, mut host) = Sandbox::sealed();
    host.run("true");
    assert_eq!(host.call(renew()).failure.unwrap().code, "INVALID_INPUT");
    let (_, stream) = host.run("echo $CAISSON_SANDBOX");
    assert_eq!(stream.stdout, b"\n");
}

#[test]
fn a_rehearsal_counts_as_no_command() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let rehearsal = link::Start { rehearsal: true, ..shell("echo for nobody") };
    let stream = host.start(rehearsal).unwrap();
    host.finish(stream);
    let answer = host.call(Message::Renew(link::Renew { sandbox: "sb_other".into() }));
    assert_eq!(answer.failure, None);
    let (_, stream) = host.run("echo $CAISSON_SANDBOX");
    assert_eq!(stream.stdout, b"sb_other\n");
}
