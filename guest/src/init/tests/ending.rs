use super::{
    Sandbox,
    host::{Host, shell},
};
use crate::proto::link::{self, guest_control, host_control::Message};

fn processes(host: &mut Host) -> u32 {
    match host.call(Message::Ping(link::Ping { token: 0 })).message {
        Some(guest_control::Message::Pong(pong)) => pong.processes,
        other => panic!("{other:?}"),
    }
}

fn wait_for_none(host: &mut Host) {
    for _ in 0..500 {
        if processes(host) == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("processes are left");
}

fn signal(host: &mut Host, stream: u32, signal: i32, tree: bool) -> Option<String> {
    let message = link::Signal { stream, signal: signal as u32, tree };
    host.call(Message::Signal(message)).failure.map(|failure| failure.code)
}

#[test]
fn a_timeout_asks_first() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let start =
        link::Start { timeout_ms: 200, grace_ms: 20_000, ..shell("trap 'echo asked; exit 3' TERM; sleep 60 & wait") };
    let stream = host.start(start).unwrap();
    let (exited, state) = host.finish(stream);
    assert_eq!((exited.code, exited.timed_out, exited.left_running), (3, true, 0));
    assert_eq!(state.stdout, b"asked\n");
    wait_for_none(&mut host);
}

#[test]
fn a_tree_that_ignores_the_request_and_forks_away_is_killed_whole() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; (sh -c \"while :; do sleep 1; done\" &) ; sleep 600' &) ; sleep 600";
    let stream = host.start(link::Start { timeout_ms: 300, grace_ms: 200, ..shell(script) }).unwrap();
    let (exited, _) = host.finish(stream);
    assert_eq!((exited.signal, exited.timed_out, exited.left_running), (9, true, 0));
    assert_eq!(processes(&mut host), 0);
}

#[test]
fn waiting_for_a_stubborn_descendant_costs_nothing() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let script = "(trap '' TERM; sleep 30; sleep 30) & trap 'exit 3' TERM; wait";
    let stream = host.start(link::Start { timeout_ms: 200, grace_ms: 1000, ..shell(script) }).unwrap();
    let (exited, _) = host.finish(stream);
    assert_eq!((exited.code, exited.timed_out, exited.left_running), (3, true, 0));
    let (_, state) = host.run("cut -d' ' -f14,15 /proc/1/stat");
    let text = String::from_utf8(state.stdout).unwrap();
    let ticks: u32 = text.split_whitespace().map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    assert!(ticks < 50, "PID 1 used {ticks} ticks");
}

#[test]
fn a_timeout_does_not_touch_what_is_not_of_the_tree() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let other = host.start_shell("sleep 1.2; echo other");
    let stream = host.start(link::Start { timeout_ms: 100, grace_ms: 0, ..shell("sleep 600") }).unwrap();
    assert!(host.finish(stream).0.timed_out);
    let (exited, state) = host.finish(other);
    assert_eq!((exited.code, state.stdout), (0, b"other\n".to_vec()));
}

#[test]
fn a_fork_bomb_in_one_group_ends_with_its_tree() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let script = "n=0; f() { while :; do sleep 0.01 & done; }; f & f & f & wait";
    let stream = host.start(link::Start { timeout_ms: 400, grace_ms: 50, ..shell(script) }).unwrap();
    let (exited, _) = host.finish(stream);
    assert!(exited.timed_out);
    wait_for_none(&mut host);
}

#[test]
fn signals_reach_the_group_or_the_tree() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done");
    host.wait_until(|host| host.streams[&stream].stdout == b"ready\n");
    assert_eq!(signal(&mut host, stream, libc::SIGUSR1, false), None);
    host.wait_until(|host| host.streams[&stream].stdout.ends_with(b"usr1\n"));
    assert_eq!(signal(&mut host, stream, 0, false).unwrap(), "INVALID_INPUT");
    assert_eq!(signal(&mut host, stream, 65, false).unwrap(), "INVALID_INPUT");
    assert_eq!(signal(&mut host, stream, libc::SIGKILL, false), None);
    assert_eq!(host.wait(stream).signal, 9);
    // What else was in its group may take a moment longer to be gone.
    let refused = (0..200).find_map(|_| {
        signal(&mut host, stream, libc::SIGTERM, false).or_else(|| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        })
    });
    assert_eq!(refused.unwrap(), "PROCESS_ENDED");
    assert_eq!(signal(&mut host, 4000, libc::SIGTERM, false).unwrap(), "PROCESS_NOT_FOUND");

    let stream = host.start_shell("setsid sleep 300 & setsid sleep 300 & echo ready; wait");
    host.wait_until(|host| host.streams[&stream].stdout == b"ready\n");
    assert_eq!(signal(&mut host, stream, libc::SIGKILL, true), None);
    let (exited, _) = host.finish(stream);
    assert_eq!((exited.signal, exited.left_running, exited.timed_out), (9, 0, false));
    // What has ended is counted until it was buried.
    wait_for_none(&mut host);
}

#[test]
fn what_was_left_running_can_still_be_ended() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("setsid sleep 300 >/dev/null 2>&1 & sleep 300 >/dev/null 2>&1 & exit 0");
    assert_eq!(host.wait(stream).left_running, 2);
    assert_eq!(processes(&mut host), 2);
    assert_eq!(signal(&mut host, stream, libc::SIGKILL, true), None);
    wait_for_none(&mut host);
    let mut ended = signal(&mut host, stream, libc::SIGKILL, true);
    for _ in 0..100 {
        if ended.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        ended = signal(&mut host, stream, libc::SIGKILL, true);
    }
    assert_eq!(ended.unwrap(), "PROCESS_ENDED");
}

#[test]
fn zombies_are_reaped() {
    let (_sandbox, mut host) = Sandbox::sealed();
    // Orphans that end while their command runs, and after it.
    let (exited, _) = host.run("for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.1 &) ; done; sleep 0.4; ls /proc >/dev/null");
    assert_eq!(exited.left_running, 0);
    let (_, stream) = host.run("grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l");
    assert_eq!(stream.stdout, b"0\n");
    host.run("for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.2 >/dev/null 2>&1 &) ; done");
    std::thread::sleep(std::time::Duration::from_millis(500));
    wait_for_none(&mut host);
}

/// Kills every monitor, as hostile code with the same user can.
const KILL_MONITORS: &str =
    "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = caisson-monitor ] && kill -SIG ${p#/proc/}; done 2>/dev/null";

#[test]
fn a_killed_monitor_does_not_hide_the_exit() {
    let (_sandbox, mut host) = Sandbox::sealed();
    for how in ["KILL", "STOP"] {
        let kill = KILL_MONITORS.replace("SIG", how);
        let bystander = host.start_shell("sleep 0.6; echo bystander; exit 6");
        let (exited, state) = host.run(&format!("{kill}; sleep 0.1; echo out; exit 7"));
        assert_eq!((exited.code, state.stdout), (7, b"out\n".to_vec()), "{how}");
        let (exited, state) = host.finish(bystander);
        assert_eq!((exited.code, state.stdout), (6, b"bystander\n".to_vec()), "{how}");
    }
    wait_for_none(&mut host);
}

#[test]
fn a_tree_without_its_monitor_still_ends_at_its_timeout() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let kill = KILL_MONITORS.replace("SIG", "KILL");
    let script = format!("trap '' TERM; (setsid sleep 600 &); {kill}; (setsid sleep 600 &); sleep 600");
    let stream = host.start(link::Start { timeout_ms: 500, grace_ms: 100, ..shell(&script) }).unwrap();
    let (exited, _) = host.finish(stream);
    assert!(exited.timed_out);
    wait_for_none(&mut host);
}

#[test]
fn killing_everything_leaves_the_guest() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let other = host.start_shell("sleep 600");
    let stream = host.start_shell("kill -9 -1; sleep 600");
    assert_eq!(host.finish(other).0.signal, 9);
    // `kill -1` spares the caller; its monitor is gone.
    assert_eq!(signal(&mut host, stream, libc::SIGKILL, true), None);
    assert_eq!(host.finish(stream).0.signal, 9);
    assert_eq!(host.run("kill -TERM 1; kill -KILL 1; kill -CHLD 1; kill -STOP 1; exit 8").0.code, 8);
    wait_for_none(&mut host);
}
