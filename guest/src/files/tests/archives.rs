use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    process::{Command, Stdio},
};

use super::{Fake, Sandbox, both, code};
use crate::{
    files::tar::{Kind, Marks, Member, writer},
    proto::link::{Failure, FileCall, FileReply, PackCall, UnpackCall, file_call::Call},
};

fn unpack(sandbox: &Sandbox, path: &str, archive: &[u8]) -> Result<FileReply, Failure> {
    let call = UnpackCall { stream: 1, path: path.into(), max_bytes: 1 << 20, max_files: 100, any_links: false };
    // In pieces of an odd size, so that no block comes whole.
    let pieces: Vec<&[u8]> = archive.chunks(301).collect();
    sandbox.converse(Call::Unpack(call), &pieces).answer()
}

fn pack(sandbox: &Sandbox, path: &str) -> Vec<u8> {
    let packed = sandbox.converse(Call::Pack(PackCall { stream: 1, path: path.into(), ..Default::default() }), &[]);
    assert!(packed.is_ended && packed.failed.is_none(), "{:?}", packed.failed);
    packed.output
}

fn member(kind: Kind, path: &str) -> Member {
    let (path, target) = path.split_once(" -> ").unwrap_or((path, ""));
    Member {
        kind,
        path: path.as_bytes().to_vec(),
        target: target.as_bytes().to_vec(),
        mode: 0o644,
        size: 0,
        modified: 1_000_000_000,
        marks: Marks::default(),
    }
}

fn archive(members: &[(Member, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (member, content) in members {
        writer::put_member(&mut out, &Member { size: content.len() as u64, ..member.clone() });
        out.extend_from_slice(content);
        writer::put_padding(&mut out, content.len() as u64);
    }
    writer::put_end(&mut out);
    out
}

/// Changes a header after the fact and mends its checksum.
pub fn forge(archive: &mut [u8], at: usize, bytes: &[u8]) {
    archive[at..at + bytes.len()].copy_from_slice(bytes);
    archive[148..156].fill(b' ');
    let sum: u32 = archive[..512].iter().map(|byte| u32::from(*byte)).sum();
    archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn a_tree_survives_packing_and_unpacking() {
    both(|sandbox| {
        let long = format!("{}/{}", "d".repeat(200), "f".repeat(250));
        sandbox.put("tree/a", "content");
        sandbox.put("tree/sub/b", vec![7; 70_000]);
        sandbox.put(&format!("tree/{long}"), "long");
        fs::write(sandbox.path.join(std::ffi::OsString::from("tree/ü\n")), "odd").unwrap();
        symlink("../a", sandbox.join("tree/sub/link")).unwrap();
        symlink("x".repeat(150), sandbox.join("tree/longlink")).unwrap();
        fs::create_dir(sandbox.join("tree/empty")).unwrap();
        fs::set_permissions(sandbox.join("tree/a"), fs::Permissions::from_mode(0o4751)).unwrap();
        fs::set_permissions(sandbox.join("tree/sub"), fs::Permissions::from_mode(0o555)).unwrap();
        let packed = pack(sandbox, "/tree");
        let reply = unpack(sandbox, "/new/copy", &packed).unwrap();
        assert_eq!((reply.files, reply.bytes), (9, 7 + 70_000 + 4 + 3));
        for name in ["a", "sub/b", &long, "ü\n"] {
            let (one, other) = (sandbox.join("tree").join(name), sandbox.join("new/copy").join(name));
            assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap(), "{name}");
            assert_eq!(fs::metadata(&one).unwrap().mtime(), fs::metadata(&other).unwrap().mtime());
        }
        let mode = |path: &str| fs::metadata(sandbox.join(path)).unwrap().mode() & 0o7777;
        assert_eq!((mode("new/copy/a"), mode("new/copy/sub"), mode("new/copy/empty")), (0o751, 0o555, 0o755));
        assert_eq!(fs::read_link(sandbox.join("new/copy/sub/link")).unwrap().to_str(), Some("../a"));
        assert_eq!(fs::read_link(sandbox.join("new/copy/longlink")).unwrap().as_os_str().len(), 150);
        assert!(packed == pack(sandbox, "/tree") && packed == pack(sandbox, "/new/copy"), "packing is reproducible");
    });
}

#[test]
fn others_read_what_we_write_and_we_read_what_others_write() {
    let sandbox = Sandbox::new(false);
    let long = "y".repeat(180);
    sandbox.put("tree/plain", "content");
    sandbox.put(&format!("tree/{long}/{long}"), "deep");
    fs::hard_link(sandbox.join("tree/plain"), sandbox.join("tree/same")).unwrap();
    symlink("plain", sandbox.join("tree/link")).unwrap();
    fs::create_dir(sandbox.join("theirs")).unwrap();
    fs::write(sandbox.join("ours.tar"), pack(&sandbox, "/tree")).unwrap();
    let tar = |args: &[&str]| {
        let mut command = Command::new("tar");
        command.current_dir(&sandbox.path).args(args).stderr(Stdio::null()).output()
    };
    if tar(&["--version"]).is_err() {
        eprintln!("skipped: no tar");
        return;
    }
    assert!(tar(&["-xf", "ours.tar", "-C", "theirs"]).unwrap().status.success());
    assert_eq!(sandbox.text(&format!("theirs/{long}/{long}")), "deep");
    for format in ["ustar", "gnu", "pax", "posix"] {
        // ustar cannot hold the longest name and says so.
        let exclude = if format == "ustar" { format!("--exclude={long}") } else { "--exclude=none".into() };
        let theirs = tar(&["-cf", "-", &format!("--format={format}"), &exclude, "-C", "tree", "."]).unwrap().stdout;
        unpack(&sandbox, &format!("/from-{format}"), &theirs).unwrap();
        assert_eq!(sandbox.text(&format!("from-{format}/same")), "content");
        assert_eq!(sandbox.text(&format!("from-{format}/link")), "content");
        if format != "ustar" {
            assert_eq!(sandbox.text(&format!("from-{format}/{long}/{long}")), "deep");
        }
    }
}

#[test]
fn unpacking_merges_directories_and_replaces_files() {
    both(|sandbox| {
        sandbox.put("to/dir/old", "old");
        sandbox.put("to/dir/same", "old");
        sandbox.put("precious", "kept");
        symlink("/precious", sandbox.join("to/link")).unwrap();
        let good = archive(&[
            (member(Kind::File, "dir/same"), b"new"),
            (member(Kind::File, "dir/sub/new"), b"new"),
            (member(Kind::File, "link"), b"no longer a link"),
        ]);
        unpack(sandbox, "/to", &good).unwrap();
        assert_eq!(sandbox.text("to/dir/old") + &sandbox.text("to/dir/same"), "oldnew");
        assert_eq!((sandbox.text("to/link").as_str(), sandbox.text("precious").as_str()), ("no longer a link", "kept"));
        // A directory where a file is, and the other way round.
        let before = sandbox.names();
        for clash in ["dir/old/x", "dir"] {
            let bad = archive(&[(member(Kind::File, "first"), b"1"), (member(Kind::File, clash), b"2")]);
            assert_eq!(code(unpack(sandbox, "/to", &bad)), "PATH_EXISTS");
            assert_eq!(sandbox.names(), before);
        }
        // A link to a directory is not a directory to unpack into.
        symlink("/precious-dir", sandbox.join("to/elsewhere")).unwrap();
        fs::create_dir(sandbox.join("precious-dir")).unwrap();
        let bad = archive(&[(member(Kind::File, "elsewhere/x"), b"1")]);
        assert_eq!(code(unpack(sandbox, "/to", &bad)), "PATH_EXISTS");
    });
}

#[test]
fn hostile_archives_are_rejected_whole() {
    let file = |path: &str| (member(Kind::File, path), b"x".as_slice());
    let other = |kind, path: &str| (member(kind, path), b"".as_slice());
    type Case<'a> = (&'a str, Vec<(Member, &'a [u8])>);
    let cases: Vec<Case<'_>> = vec![
        ("parent", vec![file("../escape")]),
        ("parent inside", vec![file("a/../../escape")]),
        ("absolute", vec![file("/escape")]),
        ("absolute link", vec![other(Kind::Symlink, "link -> /etc")]),
        ("climbing link", vec![other(Kind::Symlink, "a/link -> ../../x")]),
        ("through a link", vec![other(Kind::Symlink, "link -> dir"), file("link/x")]),
        ("link chain", vec![other(Kind::Symlink, "a/b -> .."), other(Kind::Symlink, "c -> a/b/..")]),
        ("hard link outside", vec![other(Kind::HardLink, "link -> ../secret")]),
        ("hard link to nothing", vec![other(Kind::HardLink, "link -> nothing")]),
        ("hard link to link", vec![other(Kind::Symlink, "s -> x"), other(Kind::HardLink, "h -> s")]),
        ("duplicate", vec![file("same"), file("same")]),
        ("duplicate spelling", vec![file("same"), file("./same")]),
        ("duplicate directory", vec![other(Kind::Directory, "d/"), other(Kind::Directory, "d")]),
        ("file below file", vec![file("f"), file("f/x")]),
        ("directory over file", vec![file("f"), other(Kind::Directory, "f")]),
        ("set-uid", vec![(Member { mode: 0o4755, ..member(Kind::File, "suid") }, b"x")]),
        ("set-gid", vec![(Member { mode: 0o2755, ..member(Kind::Directory, "sgid") }, b"")]),
        ("link with content", vec![(member(Kind::Symlink, "link -> x"), b"x")]),
    ];
    both(|sandbox| {
        sandbox.put("to/kept", "kept");
        for (name, members) in &cases {
            let mut with_good = vec![file("good"), file("dir/good")];
            with_good.extend(members.iter().cloned());
            assert_eq!(code(unpack(sandbox, "/to", &archive(&with_good))), "HOSTILE_ARCHIVE", "{name}");
            assert_eq!(sandbox.names(), ["to/", "to/kept"], "{name}");
            assert_eq!(code(unpack(sandbox, "/not/yet", &archive(members))), "HOSTILE_ARCHIVE", "{name}");
            assert_eq!(sandbox.names(), ["to/", "to/kept"], "{name}");
        }
    });
}

#[test]
fn devices_fifos_and_malformed_headers_are_rejected() {
    let good = archive(&[(member(Kind::File, "file"), b"content")]);
    let forged = |at: usize, bytes: &[u8]| {
        let mut archive = good.clone();
        forge(&mut archive, at, bytes);
        archive
    };
    let mut bad_sum = good.clone();
    bad_sum[0] ^= 1;
    let mut followed = good.clone();
    followed.extend_from_slice(b"more");
    let cases = [
        ("character device", forged(156, b"3")),
        ("block device", forged(156, b"4")),
        ("FIFO", forged(156, b"6")),
        ("sparse", forged(156, b"S")),
        ("unknown kind", forged(156, b"Z")),
        ("negative size", forged(124, &[0xff; 12])),
        ("size is no number", forged(124, b"x")),
        ("no magic", forged(257, b"nonsense")),
        ("wrong checksum", bad_sum),
        ("cut in a header", good[..300].to_vec()),
        ("cut in content", good[..515].to_vec()),
        ("cut before the end", good[..1024].to_vec()),
        ("something after the end", followed),
        ("gzip", b"\x1f\x8b\x08".repeat(200)),
        ("nothing", Vec::new()),
    ];
    both(|sandbox| {
        for (name, archive) in &cases {
            assert_eq!(code(unpack(sandbox, "/to", archive)), "HOSTILE_ARCHIVE", "{name}");
            assert!(sandbox.names().is_empty(), "{name}");
        }
        unpack(sandbox, "/to", &good).unwrap();
    });
}

#[test]
fn bombs_are_rejected_before_they_unfold() {
    both(|sandbox| {
        let mut huge = archive(&[(member(Kind::File, "huge"), b"")]);
        // It says it has a terabyte; not a byte of it is taken.
        forge(&mut huge, 124, b"\x80\0\0\0\0\0\x01\0\0\0\0\0");
        assert_eq!(code(unpack(sandbox, "/to", &huge)), "TOO_LARGE");
        let names: Vec<String> = (0..101).map(|number| format!("file{number}")).collect();
        let many: Vec<(Member, &[u8])> = names.iter().map(|name| (member(Kind::File, name), b"".as_slice())).collect();
        assert_eq!(code(unpack(sandbox, "/to", &archive(&many))), "TOO_LARGE");
        let piece = vec![0; 600_000];
        let large = archive(&[(member(Kind::File, "a"), &piece), (member(Kind::File, "b"), &piece)]);
        assert_eq!(code(unpack(sandbox, "/to", &large)), "TOO_LARGE");
        assert!(sandbox.names().is_empty());
    });
}

#[test]
fn an_archive_that_is_given_up_leaves_nothing() {
    both(|sandbox| {
        let good = archive(&[(member(Kind::File, "a/file"), b"content")]);
        let mut channel = Fake::new(&[&good[..600]]);
        channel.is_cut = true;
        let call = UnpackCall { stream: 1, path: "/to".into(), ..Default::default() };
        super::serve_in(&sandbox.root, FileCall { call: Some(Call::Unpack(call)) }, &mut channel);
        assert!(channel.replies.is_empty() && sandbox.names().is_empty());
    });
}

#[test]
fn one_file_is_packed_by_its_name_and_what_is_special_is_left_out() {
    both(|sandbox| {
        sandbox.put("dir/file", "content");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, sandbox.join("dir/fifo"), mode).unwrap();
        unpack(sandbox, "/one", &pack(sandbox, "/dir/file")).unwrap();
        unpack(sandbox, "/all", &pack(sandbox, "/dir")).unwrap();
        assert_eq!(sandbox.text("one/file") + &sandbox.text("all/file"), "contentcontent");
        assert!(!sandbox.join("all/fifo").exists());
    });
}

#[test]
fn a_tree_that_is_too_deep_is_not_packed_halfway() {
    let sandbox = Sandbox::new(false);
    fs::create_dir_all(sandbox.join(&"d/".repeat(200))).unwrap();
    let packed = sandbox.converse(Call::Pack(PackCall { stream: 1, path: "/".into(), ..Default::default() }), &[]);
    assert_eq!((packed.failed.unwrap().code.as_str(), packed.is_ended), ("TOO_LARGE", false));
}

#[test]
fn the_reader_survives_any_bytes() {
    use crate::files::tar::reader::Reader;
    let good = archive(&[
        (member(Kind::File, &"n/".repeat(80)), b"content"),
        (member(Kind::Symlink, "link -> x"), b""),
        (member(Kind::File, "last"), &[5; 2000]),
    ]);
    // A small generator of its own: the same bytes on every machine.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random() % 4 {
            let at = random() % bytes.len();
            bytes[at] = random() as u8;
        }
        let block = random() % (bytes.len() / 512) * 512;
        if random() % 2 == 0 {
            forge(&mut bytes[block..], random() % 500, &[random() as u8]);
        }
        bytes.truncate(random() % (bytes.len() + 1));
        let mut reader = Reader::default();
        let mut content = 0;
        for piece in bytes.chunks(1 + random() % 700) {
            let taken = reader.take::<&'static str>(piece, &mut |event| {
                if let crate::files::tar::reader::Event::Content(bytes) = event {
                    content += bytes.len();
                }
                Ok(())
            });
            if taken.is_err() {
                break;
            }
        }
        assert!(content <= bytes.len());
    }
}

#[test]
fn single_members_are_packed_by_name_and_never_through_a_link() {
    both(|sandbox| {
        sandbox.put("p/d/f", "content");
        sandbox.put("hidden", "hidden");
        symlink("..", sandbox.join("p/up")).unwrap();
        let packed = |only: &[&str]| {
            let only = only.iter().map(|name| name.as_bytes().to_vec()).collect();
            sandbox.converse(Call::Pack(PackCall { stream: 1, path: "/p".into(), only, ..Default::default() }), &[])
        };
        let whole = packed(&["d", "d/f", "gone", "d/f/x"]);
        assert!(whole.is_ended && whole.failed.is_none());
        unpack(sandbox, "/copy", &whole.output).unwrap();
        assert_eq!(sandbox.text("copy/d/f"), "content");
        let through = packed(&["up", "up/hidden"]);
        assert!(through.is_ended && !through.output.windows(6).any(|window| window == b"hidden"));
        for name in ["../hidden", "/hidden", ""] {
            assert_eq!(packed(&[name]).failed.unwrap().code, "INVALID_PATH");
        }
    });
}
