use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::Sandbox;
use crate::{
    files::Channel,
    proto::link::{self, FileCall, FileReply, file_call::Call, guest_control, host_control::Message},
};

/// Stands for the real file calls: what it does is told by the path.
pub fn fake_serve(call: FileCall, channel: &mut dyn Channel) {
    let failed = link::Failure { code: "PATH_NOT_FOUND".into(), ..Default::default() };
    match call.call {
        Some(Call::Read(read)) => {
            let _ = channel.reply(Ok(FileReply { bytes: read.length, ..Default::default() }));
            let piece: Vec<u8> = (0..read.length).map(|at| at as u8).collect();
            if channel.send(&piece).is_ok() && read.path == "/fails" {
                let _ = channel.fail(failed);
            } else if read.path != "/stops" {
                let _ = channel.end();
            }
        }
        Some(Call::Write(_)) => {
            let mut bytes = 0;
            loop {
                match channel.receive() {
                    Ok(Some(piece)) => bytes += piece.len() as u64,
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            let _ = channel.reply(Ok(FileReply { bytes, ..Default::default() }));
        }
        Some(Call::Watch(_)) => {
            let _ = channel.reply(Ok(FileReply::default()));
            let _ = channel.send_message(b"watching".to_vec());
            let fd = channel.closed_fd();
            let _ = poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], None);
        }
        Some(Call::Stat(stat)) if stat.path == "/slow" => {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let _ = channel.reply(Ok(FileReply { files: 1, ..Default::default() }));
        }
        Some(Call::Stat(_)) => {
            let _ = channel.reply(Err(failed));
        }
        // Neither answers nor ends.
        _ => {}
    }
}

fn file(call: Call) -> Message {
    Message::File(FileCall { call: Some(call) })
}

fn reply(answer: link::GuestControl) -> FileReply {
    match answer.message {
        Some(guest_control::Message::File(reply)) => reply,
        other => panic!("{other:?} {:?}", answer.failure),
    }
}

#[test]
fn content_flows_both_ways_within_the_window() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.next_stream();
    let length = 5_000_000;
    let answer = host.call(file(Call::Read(link::ReadCall { stream, length, ..Default::default() })));
    assert_eq!(reply(answer).bytes, length);
    host.wait_until(|host| host.streams[&stream].ended);
    let content = &host.streams[&stream].stdout;
    assert_eq!(content.len() as u64, length);
    assert!(content.iter().enumerate().all(|(at, byte)| at as u8 == *byte));

    let stream = host.next_stream();
    let id = host.send_control(file(Call::Write(link::WriteCall { stream, ..Default::default() })));
    let mut sent = 0u64;
    for _ in 0..20 {
        host.wait_until(|host| sent - host.streams[&stream].taken <= 500_000);
        host.data(stream, &[1; 500_000]);
        sent += 500_000;
    }
    host.end(stream);
    assert_eq!(reply(host.answer(id)).bytes, sent);
}

#[test]
fn a_reader_that_does_not_acknowledge_stalls_only_itself() {
    let (_sandbox, mut host) = Sandbox::sealed();
    host.acknowledges = false;
    let stream = host.next_stream();
    host.send_control(file(Call::Read(link::ReadCall { stream, length: 3_000_000, ..Default::default() })));
    host.wait_until(|host| host.streams[&stream].position == 1 << 20);
    assert_eq!(host.run("echo free").1.stdout, b"free\n");
    assert_eq!(host.streams[&stream].position, 1 << 20);
    host.reset(stream);
    assert_eq!(host.run("echo still").1.stdout, b"still\n");
}

#[test]
fn failures_come_as_answers_or_as_resets() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let answer = host.call(file(Call::Stat(link::StatCall::default())));
    assert_eq!(answer.failure.unwrap().code, "PATH_NOT_FOUND");
    let answer = host.call(file(Call::Mkdir(link::MkdirCall::default())));
    assert_eq!(answer.failure.unwrap().code, "INTERNAL");
    for (path, code) in [("/fails", "PATH_NOT_FOUND"), ("/stops", "INTERNAL")] {
        let stream = host.next_stream();
        let call = link::ReadCall { stream, path: path.into(), length: 10, ..Default::default() };
        assert_eq!(reply(host.call(file(Call::Read(call)))).bytes, 10);
        host.wait_until(|host| host.streams[&stream].reset.is_some());
        assert_eq!(host.streams[&stream].reset.as_ref().unwrap().code, code);
        assert_eq!(host.streams[&stream].stdout.len(), 10);
    }
    assert_eq!(host.call(Message::File(FileCall { call: None })).failure.unwrap().code, "METHOD_UNKNOWN");
    let call = link::ReadCall { stream: 0, ..Default::default() };
    assert_eq!(host.call(file(Call::Read(call))).failure.unwrap().code, "INVALID_INPUT");
}

#[test]
fn more_calls_than_threads_wait_their_turn() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let slow = || file(Call::Stat(link::StatCall { path: "/slow".into(), ..Default::default() }));
    let ids: Vec<u32> = (0..100).map(|_| host.send_control(slow())).collect();
    for id in ids {
        assert_eq!(reply(host.answer(id)).files, 1);
    }
}

#[test]
fn watches_end_by_reset_and_by_a_cut() {
    let (sandbox, mut host) = Sandbox::sealed();
    for _ in 0..3 {
        for _ in 0..60 {
            let stream = host.next_stream();
            reply(host.call(file(Call::Watch(link::WatchCall { stream, ..Default::default() }))));
            host.wait_until(|host| host.streams[&stream].stdout == b"watching");
            if stream % 2 == 0 {
                host.reset(stream);
            }
        }
        let last_stream = host.last_stream;
        host = sandbox.connect();
        host.last_stream = last_stream;
        // Threads of the connection before have a moment to end.
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(host.run("exit 2").0.code, 2);
}
