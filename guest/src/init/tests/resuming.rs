use super::{Sandbox, host::command, output::Sequence};
use crate::proto::link::{self, host_control::Message};

#[test]
fn cuts_at_random_points_leave_no_gap_and_no_duplicate() {
    let (sandbox, mut host) = Sandbox::sealed();
    let stream = host.start(command(&["seq", "1", "3000000"])).unwrap();
    let mut expected = Sequence::new();
    let mut random = 12345u64;
    let mut cuts = 0;
    loop {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        for _ in 0..(random >> 33) % 8 {
            if host.streams[&stream].exited.is_some() {
                break;
            }
            assert!(host.pump());
            expected.check(&std::mem::take(&mut host.streams.get_mut(&stream).unwrap().stdout));
        }
        if let Some(exited) = host.streams[&stream].exited {
            assert_eq!(exited.position, 22_888_896);
            assert_eq!(host.streams[&stream].position, exited.position);
            break;
        }
        // Sometimes the daemon has stored more than it could acknowledge.
        host.acknowledges = random & 1 == 0;
        host = sandbox.reconnect(host);
        host.acknowledges = true;
        expected.check(&std::mem::take(&mut host.streams.get_mut(&stream).unwrap().stdout));
        cuts += 1;
    }
    assert!(cuts > 10, "{cuts} cuts");
    assert!(host.hello.processes.iter().any(|process| process.stream == stream && process.pid > 1));
}

#[test]
fn a_process_goes_on_while_nobody_listens_and_its_exit_is_kept() {
    let (sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("echo one; sleep 0.3; echo two; exit 9");
    host.wait_until(|host| host.streams[&stream].position == 4);
    drop(std::mem::replace(&mut host, sandbox.connect()));
    std::thread::sleep(std::time::Duration::from_millis(600));
    for _ in 0..2 {
        // A daemon that knows nothing gets what was not acknowledged, and the exit each time.
        let mut fresh = sandbox.connect();
        fresh.acknowledges = false;
        let state = fresh.hello.processes[0];
        assert_eq!((state.stream, state.exited.unwrap().code), (stream, 9));
        assert_eq!(fresh.hello.next_stream, stream + 1);
        fresh.wait_until(|host| host.streams.get(&stream).is_some_and(|stream| stream.exited.is_some()));
        let all = &fresh.streams[&stream].stdout;
        assert!(all == b"one\ntwo\n" || all == b"two\n", "{all:?}");
    }
    let mut last = sandbox.connect();
    assert!(last.call(Message::Forget(link::Forget { stream })).failure.is_none());
    assert!(last.call(Message::Forget(link::Forget { stream })).failure.is_some());
    assert!(sandbox.connect().hello.processes.is_empty());
}

#[test]
fn a_position_that_never_was_is_refused() {
    let (sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("echo one; sleep 100");
    host.wait_until(|host| host.streams[&stream].position == 4);
    host.streams.get_mut(&stream).unwrap().position = 5;
    let mut liar = sandbox.reconnect(host);
    assert_eq!(liar.hello.version, 0);
    assert!(!liar.pump());
}

#[test]
fn the_newest_connection_replaces_the_one_before() {
    let (sandbox, mut first) = Sandbox::sealed();
    let mut second = sandbox.connect();
    assert!(second.hello.sealed);
    assert!(!first.pump());
    assert_eq!(second.run("exit 4").0.code, 4);
}

#[test]
fn input_goes_on_from_where_the_guest_has_it() {
    let (sandbox, mut host) = Sandbox::sealed();
    let start = link::Start { stdin: true, ..super::host::shell("sleep 0.5; cksum") };
    let stream = host.start(start).unwrap();
    let content: Vec<u8> = (0..2_000_000u32).map(|number| (number / 7) as u8).collect();
    host.data(stream, &content[..800_000]);
    host.wait_until(|host| host.streams[&stream].taken > 0);
    let mut host = sandbox.reconnect(host);
    let taken = host.hello.processes[0].stdin_position;
    assert_eq!(taken, 800_000, "what the guest holds is not lost by a cut");
    host.streams.get_mut(&stream).unwrap().taken = taken;
    host.data(stream, &content[800_000..1_700_000]);
    host.wait_until(|host| host.streams[&stream].taken >= 1_700_000);
    host.data(stream, &content[1_700_000..]);
    host.end(stream);
    let (_, state) = host.finish(stream);
    let again = sandbox.reconnect(host);
    drop(again);
    let mut reference = std::process::Command::new("cksum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut reference.stdin.take().unwrap(), &content).unwrap();
    assert_eq!(state.stdout, reference.wait_with_output().unwrap().stdout);
}
