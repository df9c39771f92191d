use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use super::{Sandbox, both, code};
use crate::proto::link::{Failure, FileReply, MkdirCall, MoveCall, RemoveCall, file_call::Call, file_entry::Type};

fn mkdir(sandbox: &Sandbox, path: &str, parents: bool, mode: u32) -> Result<FileReply, Failure> {
    sandbox.call(Call::Mkdir(MkdirCall { path: path.into(), parents, mode }))
}

fn rename(sandbox: &Sandbox, from: &str, to: &str, overwrite: bool) -> Result<FileReply, Failure> {
    sandbox.call(Call::Move(MoveCall { from: from.into(), to: to.into(), overwrite }))
}

fn remove(sandbox: &Sandbox, path: &str, recursive: bool) -> Result<FileReply, Failure> {
    sandbox.call(Call::Remove(RemoveCall { path: path.into(), recursive }))
}

#[test]
fn directories_are_made_with_exactly_their_mode() {
    both(|sandbox| {
        mkdir(sandbox, "/a", false, 0o2777).unwrap();
        assert_eq!(fs::metadata(sandbox.join("a")).unwrap().mode() & 0o7777, 0o777);
        assert_eq!(code(mkdir(sandbox, "/a", false, 0)), "PATH_EXISTS");
        assert_eq!(code(mkdir(sandbox, "/x/y", false, 0)), "PATH_NOT_FOUND");
        let made = mkdir(sandbox, "/x/y/z", true, 0).unwrap().entry.unwrap();
        assert_eq!((made.r#type(), made.mode), (Type::Directory, 0o755));
        mkdir(sandbox, "/x/y/z", true, 0).unwrap();
        sandbox.put("file", "");
        assert_eq!(code(mkdir(sandbox, "/file", true, 0)), "PATH_EXISTS");
        assert_eq!(code(mkdir(sandbox, "/", true, 0)), "PATH_DENIED");
        // A link that leads nowhere is not a directory to make.
        symlink("/nowhere", sandbox.join("dangling")).unwrap();
        assert_eq!(code(mkdir(sandbox, "/dangling/sub", true, 0)), "PATH_NOT_FOUND");
    });
}

#[test]
fn moving_replaces_only_when_asked() {
    both(|sandbox| {
        sandbox.put("one", "1");
        sandbox.put("two", "2");
        sandbox.put("dir/inner", "3");
        assert_eq!(code(rename(sandbox, "/one", "/two", false)), "PATH_EXISTS");
        let moved = rename(sandbox, "/one", "/two", true).unwrap().entry.unwrap();
        assert_eq!((moved.path.as_slice(), sandbox.text("two")), (b"/two".as_slice(), "1".into()));
        rename(sandbox, "/dir", "/moved", false).unwrap();
        assert_eq!(sandbox.text("moved/inner"), "3");
        assert_eq!(code(rename(sandbox, "/absent", "/x", false)), "PATH_NOT_FOUND");
        assert_eq!(code(rename(sandbox, "/two", "/absent/x", false)), "PATH_NOT_FOUND");
        assert_eq!(code(rename(sandbox, "/moved", "/moved/in", false)), "INVALID_INPUT");
        sandbox.put("full/x", "");
        fs::create_dir(sandbox.join("empty")).unwrap();
        assert_eq!(code(rename(sandbox, "/empty", "/full", true)), "DIRECTORY_NOT_EMPTY");
        symlink("two", sandbox.join("link")).unwrap();
        let link = rename(sandbox, "/link", "/link2", false).unwrap().entry.unwrap();
        assert_eq!((link.r#type(), link.target.as_slice()), (Type::Symlink, b"two".as_slice()));
    });
}

#[test]
fn removing_a_tree_is_asked_for_explicitly() {
    both(|sandbox| {
        sandbox.put("dir/sub/file", "");
        sandbox.put("keep", "kept");
        symlink("../keep", sandbox.join("dir/link")).unwrap();
        assert_eq!(code(remove(sandbox, "/dir", false)), "DIRECTORY_NOT_EMPTY");
        remove(sandbox, "/dir/link", false).unwrap();
        assert_eq!(sandbox.text("keep"), "kept");
        remove(sandbox, "/dir", true).unwrap();
        assert_eq!(sandbox.names(), ["keep"]);
        assert_eq!(code(remove(sandbox, "/dir", true)), "PATH_NOT_FOUND");
        assert_eq!(code(remove(sandbox, "/", true)), "PATH_DENIED");
        remove(sandbox, "/keep", true).unwrap();
    });
}

#[test]
fn links_in_a_removed_tree_are_not_followed() {
    both(|sandbox| {
        sandbox.put("keep/file", "kept");
        fs::create_dir(sandbox.join("dir")).unwrap();
        symlink(sandbox.join("keep"), sandbox.join("dir/absolute")).unwrap();
        symlink("/keep", sandbox.join("dir/inside")).unwrap();
        symlink(&sandbox.outside, sandbox.join("dir/outside")).unwrap();
        remove(sandbox, "/dir", true).unwrap();
        assert_eq!(sandbox.names(), ["keep/", "keep/file"]);
    });
}

#[test]
fn closed_directories_are_removed_by_their_owner() {
    both(|sandbox| {
        for (path, mode) in [("tree/a/b/c", 0o000), ("tree/a/b", 0o555), ("tree/a", 0o000), ("tree", 0o400)] {
            fs::create_dir_all(sandbox.join("tree/a/b/c")).ok();
            fs::write(sandbox.join(path).join("file"), "").unwrap();
            fs::set_permissions(sandbox.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove(sandbox, "/tree", true).unwrap();
        assert!(sandbox.names().is_empty());
    });
}

#[test]
fn a_tree_deeper_than_any_path_is_removed() {
    both(|sandbox| {
        // Each half is made on its own and then moved below the other: no path could name the bottom.
        let half = "d/".repeat(1900);
        fs::create_dir_all(sandbox.join("one").join(&half)).unwrap();
        fs::create_dir_all(sandbox.join("two").join(&half)).unwrap();
        let bottom =
            rustix::fs::open(sandbox.join("one").join(&half), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
        rustix::fs::renameat(rustix::fs::CWD, sandbox.join("two"), bottom.unwrap(), "x").unwrap();
        remove(sandbox, "/one", true).unwrap();
        assert!(fs::read_dir(&sandbox.path).unwrap().next().is_none());
    });
}

#[test]
fn many_names_are_removed() {
    both(|sandbox| {
        for number in 0..3000 {
            sandbox.put(&format!("many/{number}"), "");
            if number % 10 == 0 {
                sandbox.put(&format!("many/dir{number}/x"), "");
            }
        }
        remove(sandbox, "/many", true).unwrap();
        assert!(sandbox.names().is_empty());
    });
}

#[test]
fn a_mount_below_stays_and_is_said() {
    let sandbox = Sandbox::new(false);
    sandbox.put("tree/file", "");
    fs::create_dir(sandbox.join("tree/mount")).unwrap();
    sandbox.put("other/kept", "kept");
    // A bind of the same file system: device numbers cannot tell.
    let mut bind = std::process::Command::new("mount");
    bind.arg("--bind").args([sandbox.join("other"), sandbox.join("tree/mount")]).stderr(std::process::Stdio::null());
    if !bind.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: may not mount");
        return;
    }
    let result = remove(&sandbox, "/tree", true);
    let kept = sandbox.text("other/kept");
    std::process::Command::new("umount").arg(sandbox.join("tree/mount")).status().unwrap();
    assert_eq!((code(result), kept), ("PATH_DENIED".into(), "kept".into()));
}
