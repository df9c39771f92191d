use super::{
    Sandbox,
    host::{command, shell},
};
use crate::{
    proto::link::{self, guest_control, host_control::Message},
    sys::{
        reap::Used,
        report::{RECORD_BYTES, Report, Step},
    },
};

#[test]
fn exit_codes_and_signals_are_values() {
    let (_sandbox, mut host) = Sandbox::sealed();
    for code in [0, 1, 7, 255] {
        let (exited, _) = host.run(&format!("exit {code}"));
        assert_eq!((exited.code, exited.signal, exited.timed_out), (code, 0, false));
    }
    let (exited, _) = host.run("kill -9 $$");
    assert_eq!((exited.code, exited.signal), (-1, 9));
}

#[test]
fn both_outputs_arrive_before_the_exit() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let (exited, stream) = host.run("echo out; echo err >&2; printf more");
    assert_eq!(stream.stdout, b"out\nmore");
    assert_eq!(stream.stderr, b"err\n");
    assert_eq!(exited.position, 12);
    assert!(exited.max_rss_bytes > 0 && exited.duration_us > 0);
    assert_eq!(exited.left_running, 0);
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let code = |result: Result<u32, link::Failure>| result.unwrap_err().code;
    assert_eq!(code(host.start(command(&["no-such-program"]))), "COMMAND_NOT_FOUND");
    assert_eq!(code(host.start(command(&["/no/such/program"]))), "COMMAND_NOT_FOUND");
    assert_eq!(code(host.start(command(&["/etc/passwd"]))), "COMMAND_NOT_EXECUTABLE");
    assert_eq!(code(host.start(command(&["/etc"]))), "COMMAND_NOT_FOUND");
    assert_eq!(code(host.start(command(&[]))), "INVALID_INPUT");
    assert_eq!(code(host.start(command(&["a\0b"]))), "INVALID_INPUT");
    let place = |cwd: &str| link::Start { cwd: cwd.into(), ..command(&["true"]) };
    assert_eq!(code(host.start(place("/no/such/place"))), "PATH_NOT_FOUND");
    assert_eq!(code(host.start(place("/etc/passwd"))), "NOT_A_DIRECTORY");
    let variable = link::Start { env: vec!["no value".into()], ..command(&["true"]) };
    assert_eq!(code(host.start(variable)), "INVALID_INPUT");
    let directory = std::env::temp_dir().join(format!("caisson-scripts-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let script = directory.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let failure = host.start(command(&[script.to_str().unwrap()])).unwrap_err();
    assert_eq!(failure.code, "COMMAND_NOT_EXECUTABLE", "{failure:?}");
    assert!(failure.message.contains("interpreter"), "{failure:?}");
    std::fs::remove_dir_all(&directory).unwrap();
    let (exited, _) = host.run("exit 3");
    assert_eq!(exited.code, 3, "the guest serves on");
}

#[test]
fn a_command_sees_the_environment_it_was_given_and_no_other() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let start = link::Start { env: vec!["A=1".into(), "HOME=/x".into()], ..command(&["/usr/bin/env"]) };
    let stream = host.start(start).unwrap();
    let (_, stream) = host.finish(stream);
    let mut names: Vec<&str> = std::str::from_utf8(&stream.stdout).unwrap().lines().collect();
    names.sort_unstable();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let shell = if std::path::Path::new("/bin/bash").exists() { "SHELL=/bin/bash" } else { "SHELL=/bin/sh" };
    let expected = ["A=1", "HOME=/x", "LANG=C.UTF-8", "LOGNAME=agent", path, "PWD=/tmp", shell, "TZ=UTC", "USER=agent"];
    assert_eq!(names, expected);
}

#[test]
fn a_command_has_three_descriptors_its_own_session_and_default_signals() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let (_, stream) = host.run("ls /proc/self/fd | wc -l; umask; ulimit -c; grep -E 'Sig(Blk|Ign)' /proc/self/status");
    let text = String::from_utf8(stream.stdout).unwrap();
    // `ls` itself holds a fourth one, of the directory.
    assert_eq!(text, "4\n0022\n0\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    let (_, stream) =
        host.run("read -r pid name state parent group session rest </proc/self/stat; echo $$ $group $session");
    let numbers = String::from_utf8(stream.stdout).unwrap();
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    assert!(numbers[0] == numbers[1] && numbers[1] == numbers[2], "{numbers:?}");
}

#[test]
fn standard_input_flows_and_ends() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let start = || link::Start { stdin: true, ..shell("cksum") };
    let stream = host.start(start()).unwrap();
    let piece: Vec<u8> = (0..500_000u32).map(|number| (number % 253) as u8).collect();
    let mut sent = 0u64;
    for _ in 0..8 {
        host.wait_until(|host| sent - host.streams[&stream].taken <= 500_000);
        host.data(stream, &piece);
        sent += piece.len() as u64;
    }
    host.end(stream);
    let (exited, result) = host.finish(stream);
    assert_eq!(exited.code, 0);
    assert!(String::from_utf8(result.stdout).unwrap().ends_with(" 4000000\n"));
    assert_eq!(result.taken, sent);

    let stream = host.start(start()).unwrap();
    host.end(stream);
    assert_eq!(host.finish(stream).1.stdout, b"4294967295 0\n");
}

#[test]
fn input_that_nobody_reads_is_taken_and_dropped() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.start(link::Start { stdin: true, ..shell("exec <&-; echo closed; sleep 0.3") }).unwrap();
    host.wait_until(|host| host.streams[&stream].stdout == b"closed\n");
    for turn in 1..=4u64 {
        host.data(stream, &[0; 900_000]);
        host.wait_until(|host| host.streams[&stream].taken == turn * 900_000);
    }
    assert_eq!(host.wait(stream).code, 0);
    host.data(stream, &[0; 1000]);
    host.wait_until(|host| host.streams[&stream].taken == 3_601_000);
    host.end(stream);
    assert_eq!(host.run("exit 5").0.code, 5, "the link is unhurt");
}

#[test]
fn without_input_a_command_reads_nothing() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let (exited, stream) = host.run("wc -c");
    assert_eq!((exited.code, stream.stdout), (0, b"0\n".to_vec()));
}

#[test]
fn a_terminal_echoes_resizes_and_ends() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let terminal = Some(link::Window { columns: 100, rows: 40 });
    let script = "stty size; tty; echo $TERM; while read -r line; do stty size; echo got $line; done; echo end";
    let stream = host.start(link::Start { stdin: true, terminal, ..shell(script) }).unwrap();
    let text = |host: &super::Host| String::from_utf8_lossy(&host.streams[&stream].stdout).into_owned();
    host.wait_until(|host| text(host).contains("xterm-256color\r\n"));
    assert!(text(&host).starts_with("40 100\r\n/dev/pts/"), "{}", text(&host));
    let resize = link::Resize { stream, columns: 132, rows: 50 };
    let answer = host.call(Message::Resize(resize));
    assert_eq!(answer.failure, None);
    host.data(stream, b"hello\n");
    host.wait_until(|host| text(host).contains("50 132\r\ngot hello\r\n"));
    host.end(stream);
    let (exited, result) = host.finish(stream);
    assert_eq!(exited.code, 0);
    assert!(String::from_utf8(result.stdout).unwrap().ends_with("end\r\n"));
    assert!(result.stderr.is_empty());
}

#[test]
fn ctrl_c_on_a_terminal_interrupts() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let terminal = Some(link::Window { columns: 80, rows: 24 });
    let stream = host.start(link::Start { stdin: true, terminal, ..shell("echo ready; exec sleep 100") }).unwrap();
    host.wait_until(|host| host.streams[&stream].stdout.starts_with(b"ready"));
    host.data(stream, &[3]);
    let (exited, _) = host.finish(stream);
    assert_eq!(exited.signal, libc::SIGINT as u32);
}

#[test]
fn resizing_needs_a_terminal() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let stream = host.start_shell("sleep 0.2");
    let answer = host.call(Message::Resize(link::Resize { stream, columns: 1, rows: 1 }));
    assert_eq!(answer.failure.unwrap().code, "NO_TERMINAL");
    let answer = host.call(Message::Resize(link::Resize { stream: 999, columns: 1, rows: 1 }));
    assert_eq!(answer.failure.unwrap().code, "PROCESS_NOT_FOUND");
}

#[test]
fn pings_count_processes_and_usage_measures_them() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let count = |host: &mut super::Host| match host.call(Message::Ping(link::Ping { token: 5 })).message {
        Some(guest_control::Message::Pong(pong)) => {
            assert_eq!(pong.token, 5);
            pong.processes
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&mut host), 0);
    let stream = host.start(command(&["sleep", "100"])).unwrap();
    assert_eq!(count(&mut host), 1);
    // A program that has just been put in its place has touched nothing yet.
    let mut usage = used(&mut host);
    for _ in 0..500 {
        if usage.rss_bytes > 100_000 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        usage = used(&mut host);
    }
    assert_eq!(usage.processes, 1);
    assert!(usage.rss_bytes > 100_000, "{usage:?}");
    let kill = link::Signal { stream, signal: 9, tree: false };
    assert_eq!(host.call(Message::Signal(kill)).failure, None);
    assert_eq!(host.finish(stream).0.signal, 9);
    let (_, _) = host.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    assert!(used(&mut host).cpu_us > 0, "what has ended counts too");
}

fn used(host: &mut super::Host) -> link::UsageReport {
    match host.call(Message::Usage(link::GetUsage {})).message {
        Some(guest_control::Message::Usage(usage)) => usage,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reports_of_monitors_round_trip() {
    let used = Used { user_us: 1 << 33, system_us: 7, max_rss_bytes: u64::MAX };
    for report in [
        Report::Started { pid: 12 },
        Report::Refused { step: Step::Execute, errno: 2 },
        Report::Exited { raw_status: 0x0f00, used, left: true },
    ] {
        assert_eq!(Report::decode(&report.encode()), Some(report));
    }
    assert_eq!(Report::decode(&[0; RECORD_BYTES]), None);
}
