use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use super::{Fake, Sandbox, both, code};
use crate::proto::link::{FileCall, WriteCall, file_call::Call};

fn call(path: &str) -> WriteCall {
    WriteCall { stream: 1, path: path.into(), ..Default::default() }
}

fn write(sandbox: &Sandbox, call: WriteCall, input: &[&[u8]]) -> Result<String, crate::proto::link::Failure> {
    Ok(sandbox.converse(Call::Write(call), input).answer()?.entry.unwrap().etag)
}

fn mode(sandbox: &Sandbox, path: &str) -> u32 {
    fs::metadata(sandbox.join(path)).unwrap().mode() & 0o7777
}

#[test]
fn a_file_is_made_or_replaced_whole() {
    both(|sandbox| {
        write(sandbox, call("/file"), &[b"hel", b"lo"]).unwrap();
        assert_eq!((sandbox.text("file"), mode(sandbox, "file")), ("hello".into(), 0o644));
        fs::set_permissions(sandbox.join("file"), fs::Permissions::from_mode(0o4751)).unwrap();
        write(sandbox, call("/file"), &[b"x"]).unwrap();
        assert_eq!((sandbox.text("file"), mode(sandbox, "file")), ("x".into(), 0o751));
        write(sandbox, WriteCall { mode: 0o6750, ..call("/file") }, &[]).unwrap();
        assert_eq!((sandbox.text("file"), mode(sandbox, "file")), ("".into(), 0o750));
        assert_eq!(sandbox.names(), ["file"]);
    });
}

#[test]
fn parents_are_made_when_asked() {
    both(|sandbox| {
        assert_eq!(code(write(sandbox, call("/a/b/c"), &[b"x"])), "PATH_NOT_FOUND");
        write(sandbox, WriteCall { parents: true, ..call("/a/b/c") }, &[b"x"]).unwrap();
        assert_eq!((sandbox.text("a/b/c"), mode(sandbox, "a/b")), ("x".into(), 0o755));
        assert_eq!(code(write(sandbox, WriteCall { parents: true, ..call("/a/b/c/d") }, &[b"x"])), "NOT_A_DIRECTORY");
        assert_eq!(code(write(sandbox, call("/a/b"), &[b"x"])), "NOT_A_FILE");
        assert_eq!(code(write(sandbox, call("/"), &[b"x"])), "PATH_DENIED");
        assert_eq!(sandbox.names(), ["a/", "a/b/", "a/b/c"]);
    });
}

#[test]
fn a_write_goes_where_its_link_leads_inside() {
    both(|sandbox| {
        fs::create_dir_all(sandbox.join("real/dir")).unwrap();
        symlink("/real/dir/target", sandbox.join("link")).unwrap();
        symlink("../../../../../link", sandbox.join("real/again")).unwrap();
        write(sandbox, call("/real/again"), &[b"through"]).unwrap();
        assert_eq!(sandbox.text("real/dir/target"), "through");
        assert!(sandbox.join("link").is_symlink() && sandbox.join("real/again").is_symlink());
        symlink("loop", sandbox.join("loop")).unwrap();
        assert_eq!(code(write(sandbox, call("/loop"), &[b"x"])), "PATH_DENIED");
    });
}

#[test]
fn a_write_can_depend_on_what_is_there() {
    both(|sandbox| {
        let with = |tag: &str| WriteCall { if_match: tag.into(), ..call("/file") };
        assert_eq!(code(write(sandbox, with("*"), &[b"x"])), "ETAG_MISMATCH");
        assert_eq!(code(write(sandbox, with("1-2-3-4"), &[b"x"])), "ETAG_MISMATCH");
        let first = write(sandbox, with("-"), &[b"one"]).unwrap();
        assert_eq!(code(write(sandbox, with("-"), &[b"x"])), "ETAG_MISMATCH");
        let second = write(sandbox, with(&first), &[b"two"]).unwrap();
        assert_eq!(code(write(sandbox, with(&first), &[b"x"])), "ETAG_MISMATCH");
        write(sandbox, with("*"), &[b"three"]).unwrap();
        assert_ne!(first, second);
        assert_eq!((sandbox.text("file"), sandbox.names()), ("three".into(), vec!["file".into()]));
    });
}

#[test]
fn of_many_writers_with_one_etag_exactly_one_wins() {
    let sandbox = Sandbox::new(false);
    let tag = write(&sandbox, call("/file"), &[b"0"]).unwrap();
    let won: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let call = WriteCall { if_match: tag.clone(), ..call("/file") };
                scope.spawn(|| usize::from(write(&sandbox, call, &[b"mine"]).is_ok()))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
}

#[test]
fn what_is_too_large_or_given_up_leaves_nothing() {
    both(|sandbox| {
        sandbox.put("file", "old");
        let small = WriteCall { max_bytes: 4, ..call("/file") };
        assert_eq!(code(write(sandbox, small.clone(), &[b"123", b"45"])), "TOO_LARGE");
        let mut channel = Fake::new(&[b"12"]);
        channel.is_cut = true;
        super::serve_in(&sandbox.root, FileCall { call: Some(Call::Write(small.clone())) }, &mut channel);
        assert!(channel.replies.is_empty());
        assert_eq!((sandbox.text("file"), sandbox.names()), ("old".into(), vec!["file".into()]));
        write(sandbox, small, &[b"12", b"34"]).unwrap();
    });
}

#[test]
fn a_full_file_system_is_said_as_such() {
    // A link to /dev/full is a device and refused; the real thing needs a small file system.
    if !rustix::process::geteuid().is_root() || std::path::Path::new("/dev/shm").metadata().is_err() {
        eprintln!("skipped: needs to mount a small tmpfs");
        return;
    }
    let sandbox = Sandbox::new(false);
    fs::create_dir(sandbox.join("small")).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(sandbox.join("small"))
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: may not mount");
        return;
    }
    let result = write(&sandbox, call("/small/file"), &[&[0; 1 << 20]]);
    let left = fs::read_dir(sandbox.join("small")).unwrap().count();
    std::process::Command::new("umount").arg(sandbox.join("small")).status().unwrap();
    assert_eq!((code(result), left), ("STORAGE_FULL".into(), 0));
}
