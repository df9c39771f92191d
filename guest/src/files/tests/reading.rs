use std::{fs, os::unix::fs::symlink};

use super::{Sandbox, both, code};
use crate::files::{
    directory::{Entry, Tree},
    path::SandboxPath,
    root::DIRECTORY,
};
use crate::proto::link::{FileEntry, ListCall, ReadCall, StatCall, file_call::Call, file_entry::Type};

fn stat(sandbox: &Sandbox, path: &str, follow: bool) -> Result<FileEntry, crate::proto::link::Failure> {
    let reply = sandbox.call(Call::Stat(StatCall { path: path.into(), follow }))?;
    Ok(reply.entry.unwrap())
}

fn read(sandbox: &Sandbox, path: &str, offset: u64, length: u64) -> super::Fake {
    sandbox.converse(Call::Read(ReadCall { stream: 1, path: path.into(), offset, length }), &[])
}

fn list(sandbox: &Sandbox, path: &str, recursive: bool) -> super::Fake {
    sandbox.converse(Call::List(ListCall { stream: 1, path: path.into(), recursive }), &[])
}

#[test]
fn a_link_is_described_as_itself_or_as_what_it_leads_to() {
    both(|sandbox| {
        sandbox.put("dir/file", "hello");
        symlink("/dir/file", sandbox.join("link")).unwrap();
        let link = stat(sandbox, "/link", false).unwrap();
        assert_eq!((link.r#type(), link.target.as_slice()), (Type::Symlink, b"/dir/file".as_slice()));
        let file = stat(sandbox, "/link", true).unwrap();
        assert_eq!((file.r#type(), file.size, file.path.as_slice()), (Type::Regular, 5, b"/link".as_slice()));
        assert_eq!(stat(sandbox, "/", false).unwrap().r#type(), Type::Directory);
        assert_eq!(code(stat(sandbox, "/absent", false)), "PATH_NOT_FOUND");
        assert_eq!(code(stat(sandbox, "/dir/file/x", false)), "NOT_A_DIRECTORY");
        assert_eq!(code(stat(sandbox, "/../secret", false)), "PATH_LEAVES_ROOT");
        assert_eq!(code(stat(sandbox, "relative", false)), "INVALID_PATH");
    });
}

#[test]
fn an_etag_changes_with_the_content() {
    both(|sandbox| {
        sandbox.put("file", "one");
        let first = stat(sandbox, "/file", false).unwrap().etag;
        assert_eq!(first, stat(sandbox, "/file", false).unwrap().etag);
        std::thread::sleep(std::time::Duration::from_millis(20));
        sandbox.put("file", "two");
        assert_ne!(first, stat(sandbox, "/file", false).unwrap().etag);
    });
}

#[test]
fn a_file_is_read_whole_or_in_part() {
    both(|sandbox| {
        let content: Vec<u8> = (0..700_000_u32).map(|at| (at * 7) as u8).collect();
        sandbox.put("file", &content);
        let whole = read(sandbox, "/file", 0, 0);
        assert!(whole.is_ended && whole.output == content);
        assert_eq!(whole.replies[0].as_ref().unwrap().entry.as_ref().unwrap().size, 700_000);
        assert_eq!(read(sandbox, "/file", 300_000, 5).output, &content[300_000..300_005]);
        assert_eq!(read(sandbox, "/file", 699_999, 0).output, &content[699_999..]);
        assert_eq!(read(sandbox, "/file", 699_999, 100).output, &content[699_999..]);
        for offset in [700_000, u64::MAX] {
            let beyond = read(sandbox, "/file", offset, 0);
            assert!(beyond.is_ended && beyond.output.is_empty());
        }
        sandbox.put("empty", "");
        assert!(read(sandbox, "/empty", 0, 0).is_ended);
        assert_eq!(code(read(sandbox, "/", 0, 0).answer()), "NOT_A_FILE");
        assert_eq!(code(read(sandbox, "/absent", 0, 0).answer()), "PATH_NOT_FOUND");
    });
}

#[test]
fn a_listing_has_everything_once() {
    both(|sandbox| {
        sandbox.put("dir/sub/deep", "x");
        sandbox.put("dir/file", "12");
        symlink("sub", sandbox.join("dir/link")).unwrap();
        let names = |recursive| {
            let mut names: Vec<_> = list(sandbox, "/dir", recursive)
                .entries()
                .iter()
                .map(|entry| (String::from_utf8(entry.path.clone()).unwrap(), entry.r#type()))
                .collect();
            names.sort();
            names
        };
        let file = ("file".into(), Type::Regular);
        let link = ("link".into(), Type::Symlink);
        let sub = ("sub".into(), Type::Directory);
        assert_eq!(names(false), [file.clone(), link.clone(), sub.clone()]);
        assert_eq!(names(true), [file, link, sub, ("sub/deep".into(), Type::Regular)]);
        assert_eq!(code(list(sandbox, "/dir/file", false).answer()), "NOT_A_DIRECTORY");
    });
}

#[test]
fn a_large_directory_comes_in_batches() {
    both(|sandbox| {
        fs::create_dir(sandbox.join("many")).unwrap();
        for number in 0..5000 {
            fs::write(sandbox.join(&format!("many/{number:0>200}")), "").unwrap();
        }
        let listing = list(sandbox, "/many", false);
        assert!(listing.messages.len() > 3, "{} messages", listing.messages.len());
        let mut names: Vec<_> = listing.entries().into_iter().map(|entry| entry.path).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5000);
    });
}

#[test]
fn what_cannot_be_looked_into_is_still_listed() {
    both(|sandbox| {
        use std::os::unix::ffi::OsStrExt;
        let odd = std::ffi::OsStr::from_bytes(b"\xff\n\x1b[31m");
        fs::write(sandbox.path.join(odd), "").unwrap();
        let mut deep = sandbox.path.clone();
        for _ in 0..200 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let entries = list(sandbox, "/", true).entries();
        assert!(entries.iter().any(|entry| entry.path == odd.as_bytes()));
        let deepest = entries.iter().map(|entry| entry.path.len()).max().unwrap();
        assert_eq!(deepest, 128 * 2 - 1);
    });
}

#[test]
fn a_directory_that_is_removed_while_it_is_read_is_over() {
    both(|sandbox| {
        sandbox.put("a/file", "");
        let mut tree =
            Tree::new(sandbox.root.open_at(&SandboxPath::parse("/").unwrap(), DIRECTORY).unwrap(), false).unwrap();
        let found = tree.next().unwrap().unwrap();
        assert!(tree.enter(&found).unwrap() == Entry::Entered);
        fs::remove_dir_all(sandbox.join("a")).unwrap();
        assert!(tree.next().unwrap().is_none());
    });
}
