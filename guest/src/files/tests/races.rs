//! A directory and a link change places all the time while files are read and written through them.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Sandbox, both};
use crate::proto::link::{
    ListCall, MkdirCall, PackCall, ReadCall, RemoveCall, StatCall, UnpackCall, WriteCall, file_call::Call,
};

/// With `CAISSON_TEST_FULL` many more.
fn rounds() -> u32 {
    if std::env::var_os("CAISSON_TEST_FULL").is_some() { 10_000 } else { 1500 }
}

/// `swap` is a directory or a link out of the root, at any moment the other one.
fn while_swapping(sandbox: &Sandbox, target: &str, work: impl Fn(u32)) {
    sandbox.put("swap/file", "inside");
    fs::create_dir_all(sandbox.join("swap/sub")).unwrap();
    symlink(target, sandbox.join("other")).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (one, other) = (sandbox.join("swap"), sandbox.join("other"));
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for round in 0..rounds() {
            work(round);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn targets(sandbox: &Sandbox) -> [String; 2] {
    [sandbox.outside.to_str().unwrap().to_owned(), "..".into()]
}

#[test]
fn nothing_outside_is_ever_read() {
    both(|sandbox| {
        fs::write(sandbox.outside.join("file"), "outside").unwrap();
        while_swapping(sandbox, &targets(sandbox)[0], |round| {
            let path = if round % 2 == 0 { "/swap/file" } else { "/swap/sub/../file" };
            let call = ReadCall { stream: 1, path: path.into(), offset: 0, length: 0 };
            let found = sandbox.converse(Call::Read(call), &[]);
            assert!(found.output.is_empty() || found.output == b"inside");
            let call = StatCall { path: "/swap/secret".into(), follow: true };
            assert!(sandbox.call(Call::Stat(call)).is_err());
            let call = ListCall { stream: 1, path: "/swap".into(), recursive: true };
            let listing = sandbox.converse(Call::List(call), &[]);
            assert!(listing.replies[0].is_err() || listing.entries().iter().all(|entry| entry.path != b"secret"));
        });
    });
}

#[test]
fn nothing_outside_is_ever_written_or_removed() {
    both(|sandbox| {
        fs::create_dir(sandbox.outside.join("sub")).unwrap();
        fs::write(sandbox.outside.join("sub/kept"), "kept").unwrap();
        let before = outside(sandbox);
        while_swapping(sandbox, &targets(sandbox)[1], |round| {
            let call = WriteCall { stream: 1, path: format!("/swap/new{}", round % 7), ..Default::default() };
            let _ = sandbox.converse(Call::Write(WriteCall { parents: round % 2 == 0, ..call }), &[b"x"]);
            let path = format!("/swap/sub/dir{}", round % 3);
            let _ = sandbox.call(Call::Mkdir(MkdirCall { path, parents: true, mode: 0 }));
            let path = if round % 2 == 0 { "/swap/secret" } else { "/swap/sub" };
            let _ = sandbox.call(Call::Remove(RemoveCall { path: path.into(), recursive: true }));
        });
        assert_eq!(outside(sandbox), before);
    });
}

#[test]
fn archives_neither_take_from_outside_nor_land_there() {
    both(|sandbox| {
        let before = outside(sandbox);
        sandbox.put("source/sub/secret", "inside");
        let archive = sandbox
            .converse(Call::Pack(PackCall { stream: 1, path: "/source".into(), ..Default::default() }), &[])
            .output;
        while_swapping(sandbox, &targets(sandbox)[0], |round| {
            if round % 10 != 0 {
                return;
            }
            let call = UnpackCall { stream: 1, path: "/swap".into(), max_bytes: 0, max_files: 0, any_links: false };
            let _ = sandbox.converse(Call::Unpack(call), &[&archive]);
            let call = PackCall { stream: 1, path: "/swap".into(), ..Default::default() };
            let packed = sandbox.converse(Call::Pack(call), &[]).output;
            assert!(!packed.windows(7).any(|window| window == b"outside"));
        });
        assert_eq!(outside(sandbox), before);
    });
}

/// Names and contents around the root.
fn outside(sandbox: &Sandbox) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&sandbox.outside).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let inner = if name == "root" { Vec::new() } else { fs::read(entry.path()).unwrap_or_default() };
        found.push((name, inner));
        if entry.path() == sandbox.outside.join("sub") {
            let names = fs::read_dir(entry.path()).unwrap().flatten();
            found.extend(names.map(|inner| (format!("sub/{}", inner.file_name().to_string_lossy()), Vec::new())));
        }
    }
    found.sort();
    found
}
