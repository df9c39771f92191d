use std::fmt::Write;

use super::{Sandbox, host::command};
use crate::{proto::link, rules::LINK_WINDOW_BYTES};

/// What `seq 1 last` prints, to be compared piece by piece.
pub struct Sequence {
    next: u64,
    text: String,
    at: usize,
}

impl Sequence {
    pub fn new() -> Self {
        Self { next: 1, text: String::new(), at: 0 }
    }

    pub fn check(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.at == self.text.len() {
                self.text.clear();
                self.at = 0;
                for _ in 0..1000 {
                    writeln!(self.text, "{}", self.next).unwrap();
                    self.next += 1;
                }
            }
            let count = bytes.len().min(self.text.len() - self.at);
            assert!(bytes[..count] == self.text.as_bytes()[self.at..self.at + count], "output differs");
            self.at += count;
            bytes = &bytes[count..];
        }
    }
}

fn stream_all(host: &mut super::Host, stream: u32) -> link::Exited {
    let mut expected = Sequence::new();
    loop {
        assert!(host.pump());
        let state = host.streams.get_mut(&stream).unwrap();
        expected.check(&std::mem::take(&mut state.stdout));
        if let Some(exited) = state.exited {
            return exited;
        }
    }
}

#[test]
fn much_output_arrives_whole() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.start(command(&["seq", "1", "8000000"])).unwrap();
    let exited = stream_all(&mut host, stream);
    assert_eq!(exited.position, 62_888_896);
    assert!(host.largest_frame > 100_000 && host.largest_frame <= 256 * 1024, "{}", host.largest_frame);
}

#[test]
#[ignore = "half a gigabyte"]
fn very_much_output_arrives_whole() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let begun = std::time::Instant::now();
    let stream = host.start(command(&["seq", "1", "56000000"])).unwrap();
    let exited = stream_all(&mut host, stream);
    assert_eq!(exited.position, 492_888_897);
    println!("{:.0} MB/s", exited.position as f64 / 1e6 / begun.elapsed().as_secs_f64());
}

#[test]
fn without_acknowledgements_a_process_waits_at_one_window() {
    let (_sandbox, mut host) = Sandbox::sealed();
    host.acknowledges = false;
    let stream = host.start(command(&["seq", "1", "1000000"])).unwrap();
    host.wait_until(|host| host.streams[&stream].position == LINK_WINDOW_BYTES as u64);
    // Everybody else goes on.
    for _ in 0..3 {
        assert_eq!(host.run("echo free").1.stdout, b"free\n");
    }
    assert_eq!(host.streams[&stream].position, LINK_WINDOW_BYTES as u64);
    assert!(host.streams[&stream].exited.is_none());
    host.acknowledges = true;
    host.ack(stream, LINK_WINDOW_BYTES as u64);
    let (exited, state) = host.finish(stream);
    assert_eq!(exited.position, 6_888_896);
    Sequence::new().check(&state.stdout);
}

#[test]
fn two_floods_do_not_stall_a_small_command() {
    let (_sandbox, mut host) = Sandbox::sealed();
    host.keeps = false;
    let floods = [host.start_shell("exec yes flood"), host.start_shell("exec yes another")];
    host.wait_until(|host| floods.iter().all(|flood| host.streams[flood].position > 3_000_000));
    for _ in 0..10 {
        let before = floods.map(|flood| host.streams[&flood].position);
        let (exited, _) = host.run("echo small");
        assert_eq!((exited.code, exited.position), (0, 6));
        host.wait_until(|host| floods.iter().zip(before).all(|(flood, before)| host.streams[flood].position > before));
    }
    for flood in floods {
        let signal = link::Signal { stream: flood, signal: 15, tree: false };
        assert!(host.call(link::host_control::Message::Signal(signal)).failure.is_none());
        assert_eq!(host.finish(flood).0.signal, 15);
    }
}

#[test]
fn a_slow_daemon_gets_all_that_a_command_wrote_before_it_exited() {
    let (_sandbox, mut host) = Sandbox::sealed();
    host.acknowledges = false;
    // More than the window, less than window and pipe: the command ends, its output waits.
    let stream = host.start_shell("head -c 1100000 /dev/zero");
    host.wait_until(|host| host.streams[&stream].position == LINK_WINDOW_BYTES as u64);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(host.streams[&stream].exited.is_none());
    host.acknowledges = true;
    host.ack(stream, LINK_WINDOW_BYTES as u64);
    assert_eq!(host.finish(stream).0.position, 1_100_000);
}

#[test]
fn descendants_that_hold_the_pipes_do_not_hold_the_exit() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let (exited, stream) = host.run("sleep 300 & sleep 300 & echo done");
    assert_eq!((exited.code, exited.left_running), (0, 2));
    assert_eq!(stream.stdout, b"done\n");
    let (exited, stream) = host.run("(while :; do echo noise; done) & echo done");
    assert_eq!((exited.code, exited.left_running), (0, 1));
    assert_eq!(exited.position, stream.stdout.len() as u64);
    let (exited, _) = host.run("sleep 300 >/dev/null 2>&1 & echo quick");
    assert_eq!((exited.code, exited.left_running), (0, 1));
}
