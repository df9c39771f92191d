//! What must be refused, at once.

use std::{
    fs,
    os::fd::AsRawFd,
    os::unix::{fs::symlink, net::UnixListener},
};

use rustix::fs::{CWD, FileType, Mode, mkfifoat, mknodat};

use super::{Root, Sandbox, both, code};
use crate::proto::link::{Failure, FileCall, FileReply, ListCall, PackCall, ReadCall, WriteCall, file_call::Call};

fn read(sandbox: &Sandbox, path: &str) -> Result<FileReply, Failure> {
    sandbox.call(Call::Read(ReadCall { stream: 1, path: path.into(), offset: 0, length: 0 }))
}

fn write(sandbox: &Sandbox, path: &str) -> Result<FileReply, Failure> {
    sandbox.call(Call::Write(WriteCall { stream: 1, path: path.into(), ..Default::default() }))
}

#[test]
fn fifos_sockets_and_devices_are_refused_without_waiting() {
    both(|sandbox| {
        mkfifoat(CWD, sandbox.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        let _socket = UnixListener::bind(sandbox.join("socket")).unwrap();
        symlink("fifo", sandbox.join("link")).unwrap();
        let mut paths = vec!["/fifo", "/socket", "/link"];
        if mknodat(CWD, sandbox.join("device"), FileType::CharacterDevice, Mode::RUSR, rustix::fs::makedev(1, 3))
            .is_ok()
        {
            paths.push("/device");
        }
        for path in paths {
            assert_eq!(code(read(sandbox, path)), "NOT_A_FILE", "{path}");
            assert_eq!(code(write(sandbox, path)), "NOT_A_FILE", "{path}");
            assert_eq!(
                code(sandbox.call(Call::Pack(PackCall { stream: 1, path: path.into(), ..Default::default() }))),
                "NOT_A_FILE"
            );
        }
        assert!(sandbox.names().len() >= 3);
    });
}

#[test]
fn links_stay_inside_however_they_are_written() {
    both(|sandbox| {
        let outside = sandbox.outside.join("secret");
        for (name, target) in [
            ("absolute", outside.to_str().unwrap()),
            ("climbing", "../secret"),
            ("high", "../../../../../../../../../../etc/passwd"),
        ] {
            symlink(target, sandbox.join(name)).unwrap();
            assert_eq!(code(read(sandbox, &format!("/{name}"))), "PATH_NOT_FOUND", "{name}");
        }
        symlink(&sandbox.outside, sandbox.join("dir")).unwrap();
        assert_eq!(code(read(sandbox, "/dir/secret")), "PATH_NOT_FOUND");
        assert_eq!(code(write(sandbox, "/dir/secret")), "PATH_NOT_FOUND");
        symlink("..", sandbox.join("up")).unwrap();
        assert_eq!(code(read(sandbox, "/up/secret")), "PATH_NOT_FOUND");
        write(sandbox, "/climbing").unwrap();
        // Above the root is the root.
        assert_eq!(sandbox.text("secret"), "");
    });
}

#[test]
fn links_of_proc_are_not_followed_and_its_files_not_read() {
    // The real root has a /proc; the way in leads through it.
    let secret = std::env::temp_dir().join(format!("caisson-proc-{}", std::process::id()));
    fs::write(&secret, "secret").unwrap();
    let open = fs::File::open(&secret).unwrap();
    let by_descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
    for root in [Root::open("/").unwrap(), Root::open("/").unwrap().stepwise()] {
        for path in [&by_descriptor, "/proc/self/root/etc/passwd", "/proc/self/cwd/Cargo.toml", "/proc/self/environ"] {
            let mut channel = super::Fake::new(&[]);
            let call = Call::Read(ReadCall { stream: 1, path: path.into(), offset: 0, length: 0 });
            super::serve_in(&root, FileCall { call: Some(call) }, &mut channel);
            assert!(channel.output.is_empty());
            assert_eq!(code(channel.answer()), "PATH_DENIED", "{path}");
        }
    }
    fs::remove_file(secret).unwrap();
}

#[test]
fn a_sparse_file_is_read_no_further_than_asked() {
    both(|sandbox| {
        fs::File::create(sandbox.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let call = ReadCall { stream: 1, path: "/sparse".into(), offset: 1 << 39, length: 10 };
        assert_eq!(sandbox.converse(Call::Read(call), &[]).output, [0; 10]);
    });
}

#[test]
fn an_empty_call_and_a_bad_path_are_refused() {
    let sandbox = Sandbox::new(false);
    let mut channel = super::Fake::new(&[]);
    super::serve_in(&sandbox.root, FileCall { call: None }, &mut channel);
    assert_eq!(code(channel.answer()), "INVALID_INPUT");
    for path in ["", "x", "/a\0b", "/\u{1b}"] {
        let call = Call::List(ListCall { stream: 1, path: path.into(), recursive: false });
        assert_eq!(code(sandbox.call(call)), "INVALID_PATH");
    }
}
