use std::{
    collections::HashSet,
    fs,
    os::unix::fs::symlink,
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use prost::Message;

use super::{Fake, Sandbox, code};
use crate::proto::link::{Change, FileCall, WatchCall, change::Kind, file_call::Call};

/// Watches while `work` changes things; what was told until a file named `stop` came.
fn watch(recursive: bool, prepare: impl Fn(&Sandbox), work: impl FnOnce(&Sandbox)) -> Vec<(Kind, String)> {
    let sandbox = Sandbox::new(false);
    fs::create_dir(sandbox.join("dir")).unwrap();
    prepare(&sandbox);
    let (tap, told) = mpsc::channel();
    let (closed, open) = rustix::pipe::pipe().unwrap();
    thread::scope(|scope| {
        let sandbox = &sandbox;
        scope.spawn(move || {
            let mut channel = Fake::with_closed(&[], closed, None);
            channel.tap = Some(tap);
            let call = Call::Watch(WatchCall { stream: 1, path: "/dir".into(), recursive });
            super::serve_in(&sandbox.root, FileCall { call: Some(call) }, &mut channel);
        });
        assert_eq!(next(&told), b"answered");
        work(sandbox);
        if sandbox.join("dir").exists() {
            fs::write(sandbox.join("dir/stop"), "").unwrap();
        }
        let mut changes = Vec::new();
        loop {
            let change = Change::decode(next(&told).as_slice()).unwrap();
            if change.path == b"stop" || (change.path.is_empty() && change.kind() == Kind::Removed) {
                break;
            }
            changes.push((change.kind(), String::from_utf8(change.path).unwrap()));
        }
        // The stream is given up: the watch must end.
        drop(open);
        changes
    })
}

fn next(told: &Receiver<Vec<u8>>) -> Vec<u8> {
    told.recv_timeout(Duration::from_secs(60)).expect("a message")
}

#[test]
fn changes_are_told_as_they_happen() {
    let changes = watch(
        false,
        |sandbox| sandbox.put("dir/old", "1"),
        |sandbox| {
            sandbox.put("dir/new", "");
            fs::write(sandbox.join("dir/old"), "2").unwrap();
            fs::rename(sandbox.join("dir/old"), sandbox.join("dir/renamed")).unwrap();
            fs::remove_file(sandbox.join("dir/new")).unwrap();
            fs::create_dir(sandbox.join("dir/sub")).unwrap();
            sandbox.put("dir/sub/unseen", "");
        },
    );
    let of = |path: &str| changes.iter().filter(|(_, told)| told == path).map(|(kind, _)| *kind).collect::<Vec<_>>();
    assert_eq!(of("new"), [Kind::Created, Kind::Removed]);
    assert_eq!(of("old").first(), Some(&Kind::Modified));
    assert_eq!(of("old").last(), Some(&Kind::Removed));
    assert_eq!(of("renamed"), [Kind::Created]);
    assert_eq!(of("sub"), [Kind::Created]);
    assert!(of("sub/unseen").is_empty());
}

#[test]
fn what_is_made_in_new_directories_is_told_exactly_once() {
    let rounds = 200;
    let changes = watch(
        true,
        |_| {},
        |sandbox| {
            for round in 0..rounds {
                sandbox.put(&format!("dir/{round}/a/b/file"), "");
            }
        },
    );
    let created: Vec<_> =
        changes.iter().filter(|(kind, _)| *kind == Kind::Created).map(|(_, path)| path.clone()).collect();
    let different: HashSet<_> = created.iter().cloned().collect();
    for round in 0..rounds {
        for path in [format!("{round}"), format!("{round}/a"), format!("{round}/a/b"), format!("{round}/a/b/file")] {
            assert!(different.contains(&path), "{path} was not told");
        }
    }
    assert_eq!(different.len(), rounds * 4);
}

#[test]
fn directories_that_move_are_followed_by_their_new_names() {
    let changes = watch(
        true,
        |sandbox| {
            sandbox.put("dir/one/deep/file", "");
            sandbox.put("away/x", "");
            symlink("/away", sandbox.join("dir/link")).unwrap();
        },
        |sandbox| {
            fs::rename(sandbox.join("dir/one"), sandbox.join("dir/two")).unwrap();
            sandbox.put("dir/two/deep/later", "");
            fs::rename(sandbox.join("dir/two"), sandbox.join("gone")).unwrap();
            sandbox.put("gone/deep/unseen", "");
            // Not through a link.
            sandbox.put("away/unseen", "");
        },
    );
    let has = |kind, path: &str| changes.contains(&(kind, path.to_owned()));
    assert!(has(Kind::Removed, "one") && has(Kind::Created, "two") && has(Kind::Removed, "two"), "{changes:?}");
    assert!(!changes.iter().any(|(_, path)| path.contains("unseen")), "{changes:?}");
}

#[test]
fn removing_the_watched_directory_ends_the_watch() {
    let changes = watch(true, |_| {}, |sandbox| fs::remove_dir(sandbox.join("dir")).unwrap());
    assert!(changes.is_empty(), "{changes:?}");
}

#[test]
fn only_directories_are_watched() {
    let sandbox = Sandbox::new(false);
    sandbox.put("file", "");
    let call = |path: &str| Call::Watch(WatchCall { stream: 1, path: path.into(), recursive: true });
    assert_eq!(code(sandbox.call(call("/file"))), "NOT_A_DIRECTORY");
    assert_eq!(code(sandbox.call(call("/absent"))), "PATH_NOT_FOUND");
}
