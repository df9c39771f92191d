//! The caller's terminal.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Stdio},
    sync::mpsc,
};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::{
    TestHome,
    terminal::{Size, invoke_request::Input, invoke_response::Output},
};

pub struct Pty {
    pub outside: OwnedFd,
    inside: OwnedFd,
}

impl Pty {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outside).unwrap();
        unlockpt(&outside).unwrap();
        let name = ptsname(&outside, Vec::new()).unwrap();
        let inside = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let pty = Self { outside, inside };
        pty.resize(80, 24);
        pty
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.outside, size).unwrap();
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.inside).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    pub fn stream(&self) -> Stdio {
        self.inside.as_fd().try_clone_to_owned().unwrap().into()
    }

    fn launch(&self, home: &TestHome) -> Child {
        home.launcher().stdin(self.stream()).stdout(self.stream()).stderr(self.stream()).spawn().unwrap()
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

#[test]
fn raw_mode_comes_and_goes_as_told_and_keys_arrive_exactly() {
    let home = TestHome::new();
    let (raw, is_raw) = mpsc::channel();
    home.serve(move |mut call| {
        assert!(call.open.stdin_is_terminal && call.open.stdout_is_terminal && call.open.stderr_is_terminal);
        assert_eq!(call.open.size, Some(Size { columns: 80, rows: 24 }));
        call.send(Output::Raw(true));
        call.send(Output::WantStdin(true));
        // Echoed once the mode is set, because messages are obeyed in order.
        call.send(Output::Stdout(b"ready".to_vec()));
        let Some(Input::Stdin(keys)) = call.next() else { panic!("no keys") };
        assert_eq!(keys, b"\x03");
        raw.send(()).unwrap();
        call.send(Output::Raw(false));
        call.send(Output::Exit(0));
    });
    let pty = Pty::new();
    let mut child = pty.launch(&home);
    let mut outside = File::from(pty.outside.try_clone().unwrap());
    outside.read_exact(&mut [0; 5]).unwrap();
    assert!(pty.is_raw());
    // Ctrl-C is a byte now.
    rustix::io::write(&outside, b"\x03").unwrap();
    is_raw.recv().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!pty.is_raw());
}

#[test]
fn what_is_typed_ahead_arrives_as_the_keys_that_were_pressed() {
    let home = TestHome::new();
    home.serve(|mut call| {
        call.send(Output::Raw(true));
        call.send(Output::WantStdin(true));
        let mut keys = Vec::new();
        while keys.len() < 13 {
            let Some(Input::Stdin(more)) = call.next() else { panic!("no keys") };
            keys.extend(more);
        }
        assert_eq!(keys, b"one\rtwo\r\x04part");
        call.send(Output::Exit(0));
    });
    let pty = Pty::new();
    rustix::io::write(&pty.outside, b"one\rtwo\r\x04part").unwrap();
    assert!(pty.launch(&home).wait().unwrap().success());
}

#[test]
fn the_terminal_is_put_back_however_the_call_ends() {
    let home = TestHome::new();
    let mut count = 0;
    home.serve(move |mut call| {
        count += 1;
        call.send(Output::Raw(true));
        call.send(Output::Stdout(b"ready".to_vec()));
        match count {
            // Ends with the terminal still raw; vanishes; is signalled (twice).
            1 => call.send(Output::Exit(0)),
            2 => {}
            _ => while call.next().is_some() {},
        }
    });
    for case in 0..4 {
        let pty = Pty::new();
        let mut child = pty.launch(&home);
        File::from(pty.outside.try_clone().unwrap()).read_exact(&mut [0; 5]).unwrap();
        let signal = if case == 2 { Signal::ALARM } else { Signal::TERM };
        while case >= 2 && child.try_wait().unwrap().is_none() {
            let _ = kill_process(pid_of(&child), signal);
        }
        child.wait().unwrap();
        assert!(!pty.is_raw(), "case {case}");
    }
}

#[test]
fn a_new_size_is_told() {
    let home = TestHome::new();
    let (ready, is_ready) = mpsc::channel();
    home.serve(move |mut call| {
        ready.send(()).unwrap();
        let Some(Input::Size(size)) = call.next() else { panic!("no size") };
        call.send(Output::Exit(size.columns));
    });
    let pty = Pty::new();
    let mut child = pty.launch(&home);
    is_ready.recv().unwrap();
    pty.resize(101, 24);
    // The terminal is nobody's controlling one here, so the kernel tells no one.
    kill_process(pid_of(&child), Signal::WINCH).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(101));
}
