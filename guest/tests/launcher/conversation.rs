//! What launcher and daemon tell each other.

use std::{os::unix::process::ExitStatusExt, process::Stdio, sync::mpsc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    TestHome, said,
    terminal::{EnvRequest, ReadFile, invoke_request::Input, invoke_response::Output},
};

fn pid_of(child: &std::process::Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

#[test]
fn a_call_carries_arguments_directory_and_the_listed_environment() {
    let home = TestHome::new();
    let (sender, opened) = mpsc::channel();
    home.serve(move |mut call| {
        sender.send(call.open.clone()).unwrap();
        call.send(Output::Exit(7));
    });
    let mut command = home.launcher();
    command.args(["run", "--", "a b", "ü"]).current_dir("/usr").env("SECRET", "x").env("TERM", "dumb");
    let output = command.output().unwrap();
    let open = opened.recv().unwrap();
    assert_eq!(said(&output), (Some(7), String::new(), String::new()));
    assert_eq!(open.args, ["run", "--", "a b", "ü"].map(|arg| arg.as_bytes().to_vec()));
    assert_eq!(open.cwd, b"/usr");
    assert_eq!(open.env.get("TERM").unwrap(), b"dumb");
    assert!(open.env.contains_key("CAISSON_HOME") && !open.env.contains_key("SECRET"));
    assert!(!open.stdin_is_terminal && !open.stdout_is_terminal && !open.build.is_empty());
}

#[test]
fn a_signal_is_told_to_the_daemon_which_decides_how_it_ends() {
    let home = TestHome::new();
    let (ready, is_ready) = mpsc::channel();
    home.serve(move |mut call| {
        ready.send(()).unwrap();
        match call.next() {
            Some(Input::Signal(signal)) => call.send(Output::Exit(128 + signal)),
            other => panic!("{other:?}"),
        }
    });
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let mut child = home.launcher().spawn().unwrap();
        is_ready.recv().unwrap();
        kill_process(pid_of(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn an_impatient_interrupt_ends_the_launcher_at_once() {
    let home = TestHome::new();
    let (ready, is_ready) = mpsc::channel();
    let (signalled, is_signalled) = mpsc::channel();
    home.serve(move |mut call| {
        ready.send(()).unwrap();
        while let Some(input) = call.next() {
            signalled.send(input).unwrap();
        }
    });
    let mut child = home.launcher().spawn().unwrap();
    is_ready.recv().unwrap();
    kill_process(pid_of(&child), Signal::INT).unwrap();
    assert_eq!(is_signalled.recv().unwrap(), Input::Signal(2));
    kill_process(pid_of(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_signal_that_nobody_relays_still_ends_the_launcher() {
    let home = TestHome::new();
    let (ready, is_ready) = mpsc::channel();
    home.serve(move |mut call| {
        ready.send(()).unwrap();
        let _ = call.next();
    });
    let mut child = home.launcher().spawn().unwrap();
    is_ready.recv().unwrap();
    kill_process(pid_of(&child), Signal::ALARM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(14));
}

#[test]
fn a_daemon_that_vanishes_is_an_error_with_a_next_step() {
    let home = TestHome::new();
    home.serve(|mut call| call.send(Output::Stdout(b"partial".to_vec())));
    let (code, stdout, stderr) = said(&home.launcher().output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(125), "partial"));
    assert!(stderr.contains("went away") && stderr.contains("daemon.log"), "{stderr}");
}

#[test]
fn a_refusal_is_printed_with_the_daemon_s_words() {
    let home = TestHome::new();
    // Response { status: { code: 12, message: "no such method" } }
    home.serve(|mut call| call.respond(b"\x0a\x12\x08\x0c\x12\x0eno such method"));
    let (code, _, stderr) = said(&home.launcher().output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("no such method"), "{stderr}");
}

#[test]
fn nonsense_from_the_socket_is_an_error_and_no_hang() {
    let home = TestHome::new();
    home.serve(|call| {
        use std::io::Write;
        let _ = (&call.stream).write_all(&[0xff; 64]);
        std::thread::sleep(Duration::from_secs(60));
    });
    let (code, _, stderr) = said(&home.launcher().output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("do not understand"), "{stderr}");
}

#[test]
fn files_and_variables_are_read_with_the_caller_s_rights_when_asked() {
    let home = TestHome::new();
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(home.0.join("big"), &content).unwrap();
    let (sender, answers) = mpsc::channel();
    home.serve(move |mut call| {
        call.send(Output::ReadFile(ReadFile { id: 1, path: b"big".to_vec() }));
        call.send(Output::ReadFile(ReadFile { id: 2, path: b"absent".to_vec() }));
        call.send(Output::Env(EnvRequest { id: 3, names: vec!["SECRET".into(), "UNSET".into()] }));
        let mut ended = 0;
        while ended < 3 {
            let Some(Input::File(file)) = call.next() else { panic!("not a file") };
            ended += u32::from(file.end);
            sender.send(file).unwrap();
        }
        call.send(Output::Exit(0));
    });
    let mut command = home.launcher();
    let output = command.current_dir(&home.0).env("SECRET", "sesame").output().unwrap();
    assert_eq!(said(&output).0, Some(0));
    let answers: Vec<_> = answers.try_iter().collect();
    let of = |id| answers.iter().filter(move |file| file.id == id);
    assert!(of(1).flat_map(|file| file.data.clone()).eq(content));
    assert_eq!(of(2).map(|file| file.errno).collect::<Vec<_>>(), [2]);
    assert!(of(3).flat_map(|file| file.data.clone()).eq(b"SECRET=sesame".iter().copied()));
}

#[test]
fn a_pipe_given_as_a_file_may_take_its_time() {
    let home = TestHome::new();
    let fifo = home.0.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let path = fifo.clone();
    home.serve(move |mut call| {
        call.send(Output::ReadFile(ReadFile { id: 1, path: path.as_os_str().as_encoded_bytes().to_vec() }));
        // Nobody writes yet, and the launcher still hears signals.
        let Some(Input::Signal(12)) = call.next() else { panic!("not the signal") };
        std::fs::write(&path, b"late").unwrap();
        let mut all = Vec::new();
        loop {
            let Some(Input::File(file)) = call.next() else { panic!("not a file") };
            all.extend_from_slice(&file.data);
            if file.end {
                break;
            }
        }
        call.send(Output::Stdout(all));
        call.send(Output::Exit(0));
    });
    let child = home.launcher().stdout(Stdio::piped()).spawn().unwrap();
    // The signal may come before the launcher listens for it; then it would end it, so ask until it is there.
    let status = format!("/proc/{}/status", child.id());
    while !std::fs::read_to_string(&status).unwrap().lines().any(|line| {
        line.strip_prefix("SigBlk:").is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 0x800 != 0)
    }) {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(pid_of(&child), Signal::USR2).unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()).1, "late");
}
