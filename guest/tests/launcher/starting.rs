//! Finding the daemon, starting it, refusing what is not ours.

use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::{TestHome, said, server, terminal::invoke_response::Output, text, tty::Pty};

/// Not a test of its own: the launcher starts this test program as a daemon, and this is where it
/// arrives. What it does is said by the variable's value.
#[test]
fn act_as_daemon() {
    let Ok(behaviour) = env::var("CAISSON_TEST_DAEMON") else { return };
    let home = PathBuf::from(env::var_os("CAISSON_HOME").unwrap());
    let mut starts = fs::OpenOptions::new().append(true).create(true).open(home.join("starts")).unwrap();
    writeln!(starts, "{}", std::process::id()).unwrap();
    let count = fs::read_to_string(home.join("starts")).unwrap().lines().count();
    if behaviour == "fails" {
        eprintln!("the database is locked");
        std::process::exit(3);
    }
    thread::sleep(Duration::from_millis(if behaviour == "slow" { 600 } else { 50 }));
    let listener = server::listen(&home);
    let leftovers: Vec<_> = env::vars().filter(|(name, _)| name == "SECRET").collect();
    assert!(leftovers.is_empty() && env::current_dir().unwrap().as_os_str() == "/");
    let mut answered = 0;
    while answered < 4 {
        let Some(mut call) = server::accept(&listener) else { continue };
        answered += 1;
        if behaviour == "always-other" || (behaviour == "other" && count == 1) {
            call.send(Output::Restart(true));
            fs::remove_file(home.join("run/daemon.sock")).unwrap();
            thread::sleep(Duration::from_millis(50));
            std::process::exit(0);
        }
        call.send(Output::Stdout(format!("daemon {count}\n").into_bytes()));
        call.send(Output::Exit(0));
        if behaviour != "four" {
            break;
        }
    }
    std::process::exit(0);
}

fn launcher(home: &TestHome, behaviour: &str) -> Command {
    let mut command = home.launcher();
    let daemon = format!("{} --exact --nocapture starting::act_as_daemon", env::current_exe().unwrap().display());
    command.env("CAISSON_DAEMON_COMMAND", daemon).env("CAISSON_TEST_DAEMON", behaviour).env("SECRET", "x");
    command
}

fn starts(home: &TestHome) -> usize {
    fs::read_to_string(home.0.join("starts")).unwrap_or_default().lines().count()
}

#[test]
fn a_missing_daemon_is_started() {
    let home = TestHome::new();
    fs::remove_dir_all(&home.0).unwrap();
    let output = launcher(&home, "once").output().unwrap();
    assert_eq!(said(&output), (Some(0), "daemon 1\n".into(), String::new()));
    use std::os::unix::fs::MetadataExt;
    for path in [home.0.clone(), home.0.join("run")] {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700);
    }
}

#[test]
fn waiting_for_a_slow_start_is_explained_on_a_terminal_only() {
    let home = TestHome::new();
    let output = launcher(&home, "slow").output().unwrap();
    assert_eq!(said(&output), (Some(0), "daemon 1\n".into(), String::new()));
    let home = TestHome::new();
    let pty = Pty::new();
    let status = launcher(&home, "slow").stderr(pty.stream()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    // What was written comes in pieces.
    let expected = "caisson: starting the daemon…\r\u{1b}[K";
    let mut shown = Vec::new();
    while shown.len() < expected.len() {
        let mut piece = [0; 256];
        let length = rustix::io::read(&pty.outside, &mut piece).unwrap();
        shown.extend_from_slice(&piece[..length]);
    }
    assert_eq!(text(&shown), expected);
}

#[test]
fn asking_about_the_daemon_does_not_start_it() {
    let home = TestHome::new();
    for (word, code) in [("status", 1), ("stop", 0)] {
        let output = launcher(&home, "once").args(["daemon", word]).output().unwrap();
        assert_eq!(said(&output), (Some(code), "the daemon is not running\n".into(), String::new()));
        let output = launcher(&home, "once").args(["daemon", word, "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
    }
    assert_eq!(starts(&home), 0);
    home.serve(|mut call| call.send(Output::Exit(42)));
    assert_eq!(said(&launcher(&home, "once").args(["daemon", "status"]).output().unwrap()).0, Some(42));
}

#[test]
fn a_socket_that_nobody_serves_any_more_is_no_obstacle() {
    let home = TestHome::new();
    drop(server::listen(&home.0));
    assert_eq!(said(&launcher(&home, "once").output().unwrap()).1, "daemon 1\n");
}

#[test]
fn launchers_that_come_together_start_one_daemon() {
    let home = TestHome::new();
    let children: Vec<_> = (0..4).map(|_| launcher(&home, "four").stdout(Stdio::piped()).spawn().unwrap()).collect();
    for child in children {
        assert_eq!(said(&child.wait_with_output().unwrap()).1, "daemon 1\n");
    }
    assert_eq!(starts(&home), 1);
}

#[test]
fn a_daemon_that_fails_to_start_is_quoted() {
    let home = TestHome::new();
    fs::write(home.0.join("daemon.log"), "words of another day\n").unwrap();
    let (code, _, stderr) = said(&launcher(&home, "fails").output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("the database is locked") && stderr.contains("exit status: 3"), "{stderr}");
    assert!(!stderr.contains("another day"), "{stderr}");
}

#[test]
fn a_daemon_of_another_build_is_replaced_once() {
    let home = TestHome::new();
    let output = launcher(&home, "other").output().unwrap();
    assert_eq!(said(&output), (Some(0), "daemon 2\n".into(), String::new()));
    let home = TestHome::new();
    let (code, _, stderr) = said(&launcher(&home, "always-other").output().unwrap());
    assert_eq!((code, starts(&home)), (Some(125), 2));
    assert!(stderr.contains("another build"), "{stderr}");
}

#[test]
fn an_incomplete_installation_says_what_is_missing() {
    let home = TestHome::new();
    let output = home.launcher().env("CAISSON_ROOT", "/no/such/root").env_remove("CAISSON_NODE").output().unwrap();
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(125));
    assert!(stderr.contains("/no/such/root/node_modules/.bin/node is missing"), "{stderr}");
}

#[test]
fn a_data_directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to give a directory away");
        return;
    }
    let home = TestHome::new();
    home.serve(|mut call| call.send(Output::Exit(0)));
    std::os::unix::fs::chown(&home.0, Some(12345), None).unwrap();
    let (code, _, stderr) = said(&home.launcher().output().unwrap());
    std::os::unix::fs::chown(&home.0, Some(0), None).unwrap();
    assert_eq!(code, Some(125));
    assert!(stderr.contains("belongs to another user (uid 12345)"), "{stderr}");
}

#[test]
fn a_long_data_directory_is_reached_all_the_same() {
    let home = TestHome::new();
    let long = TestHome(home.0.join("x".repeat(120)));
    fs::create_dir_all(long.0.join("run")).unwrap();
    // The test's own daemon listens by a short name for the same place.
    home.serve(|mut call| call.send(Output::Exit(9)));
    fs::rename(home.0.join("run/daemon.sock"), long.0.join("run/daemon.sock")).unwrap();
    assert_eq!(said(&long.launcher().output().unwrap()).0, Some(9));
}

#[test]
fn with_a_url_the_cli_runs_in_a_node_of_its_own() {
    let home = TestHome::new();
    let entry = home.0.join("packages/cli/src");
    fs::create_dir_all(&entry).unwrap();
    fs::write(entry.join("main.ts"), "").unwrap();
    let mut command = home.launcher();
    command.env("CAISSON_URL", "http://127.0.0.1:1").env("CAISSON_ROOT", &home.0).env("CAISSON_NODE", "/bin/echo");
    let output = command.args(["ps", "--json"]).output().unwrap();
    let expected = format!("--disable-warning=ExperimentalWarning {}/main.ts ps --json\n", entry.display());
    assert_eq!(said(&output), (Some(0), expected, String::new()));
}

#[test]
fn a_checkout_newer_than_what_was_made_of_it_is_set_up_first() {
    let home = TestHome::new();
    let write = |name: &str, text: &str| {
        let path = home.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::File::open(path).unwrap()
    };
    let at = |seconds| std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let stamp = write(".caisson/stamp", "");
    let index = write("elsewhere/index", "");
    write(".git", "gitdir: elsewhere\n");
    write("scripts/bootstrap.sh", "echo set up >&2; exit $FAILS\n");
    write(".caisson/bin/caisson", "#!/bin/sh\necho the next one got $*\n");
    home.serve(|mut call| call.send(Output::Exit(9)));
    let run = |fails: &str| {
        let mut command = home.launcher();
        said(&command.args(["ps"]).env("CAISSON_ROOT", &home.0).env("FAILS", fails).output().unwrap())
    };
    stamp.set_modified(at(1_000)).unwrap();
    index.set_modified(at(2_000)).unwrap();
    assert_eq!(run("0"), (Some(0), "the next one got ps\n".into(), "set up\n".into()));
    assert_eq!(run("1"), (Some(125), String::new(), "set up\n".into()));
    stamp.set_modified(at(2_000)).unwrap();
    assert_eq!(run("1").0, Some(9));
}
