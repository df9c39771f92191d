//! Standard streams: exact bytes, back-pressure, and readers that go away.

use std::{
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    thread,
};

use crate::{
    TestHome, said,
    terminal::{invoke_request::Input, invoke_response::Output},
};

/// Bytes in which every mistake shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn output_is_exact_and_each_stream_goes_where_it_belongs() {
    let home = TestHome::new();
    let content = pattern(3_000_000);
    let sent = content.clone();
    home.serve(move |mut call| {
        for piece in sent.chunks(100_000) {
            call.send(Output::Stdout(piece.to_vec()));
            call.send(Output::Stderr(b"\x00\xff".to_vec()));
        }
        call.send(Output::Exit(3));
    });
    let output = home.launcher().output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout == content, "stdout differs");
    assert!(output.stderr == b"\x00\xff".repeat(30), "stderr differs");
}

#[test]
fn a_message_of_the_greatest_length_arrives_whole() {
    let home = TestHome::new();
    let content = pattern(4 * 1024 * 1024 - 16);
    let sent = content.clone();
    home.serve(move |mut call| {
        call.send(Output::Stdout(sent.clone()));
        call.send(Output::Exit(0));
    });
    let file = home.0.join("out");
    let status = home.launcher().stdout(std::fs::File::create(&file).unwrap()).status().unwrap();
    assert!(status.success() && std::fs::read(&file).unwrap() == content);
}

#[test]
fn input_is_exact_to_its_end() {
    let home = TestHome::new();
    let content = pattern(5_000_000);
    home.serve(|mut call| {
        call.send(Output::WantStdin(true));
        while let Some(Input::Stdin(bytes)) = call.next() {
            call.send(Output::Stdout(bytes));
        }
        call.send(Output::Exit(0));
    });
    let mut child = home.launcher().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = content.clone();
    let writer = thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success() && output.stdout == content);
}

#[test]
fn input_that_was_not_asked_for_is_left_to_the_next_reader() {
    let home = TestHome::new();
    home.serve(|mut call| call.send(Output::Exit(0)));
    let (mut theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
    let status = home.launcher().stdin(std::os::fd::OwnedFd::from(ours.try_clone().unwrap())).status();
    assert!(status.unwrap().success());
    theirs.write_all(b"for you").unwrap();
    drop(theirs);
    let mut rest = String::new();
    (&ours).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "for you");
}

#[test]
fn a_reader_that_goes_away_ends_the_launcher_as_it_ends_other_programs() {
    let home = TestHome::new();
    home.serve(|mut call| {
        for _ in 0..1000 {
            call.send(Output::Stdout(vec![b'x'; 4096]));
        }
        call.send(Output::Exit(0));
    });
    let mut child = home.launcher().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.signal(), output.stderr.len()), (Some(13), 0));
}

#[test]
fn a_full_disk_is_said() {
    let home = TestHome::new();
    home.serve(|mut call| {
        call.send(Output::Stdout(b"x".to_vec()));
        call.send(Output::Exit(0));
    });
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (code, _, stderr) = said(&home.launcher().stdout(full).stderr(Stdio::piped()).output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("cannot write the output"), "{stderr}");
}

#[test]
fn signals_are_heard_while_a_reader_dawdles() {
    let home = TestHome::new();
    home.serve(|mut call| {
        let mut writer =
            call.stream.try_clone().map(|stream| crate::server::Call { stream, open: call.open.clone() }).unwrap();
        thread::spawn(move || {
            for _ in 0..1000 {
                writer.send(Output::Stdout(vec![b'x'; 65536]));
            }
        });
        while call.next().is_some() {}
    });
    let mut child = home.launcher().stdout(Stdio::piped()).spawn().unwrap();
    // Once a byte has come the launcher is at work, and soon stuck.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let signal = rustix::process::Signal::TERM;
    rustix::process::kill_process(pid, signal).unwrap();
    while child.try_wait().unwrap().is_none() {
        // Told once, then impatient.
        let _ = rustix::process::kill_process(pid, signal);
        thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
