//! Layers as strangers make them, and what becomes of them.

use std::{
    fs::{self, File},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{Trouble, assemble::assemble, layer::unpack};
use crate::proto::keeper::{ImageDone, UnpackLayer};

static NUMBER: AtomicU32 = AtomicU32::new(0);

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let name = format!("caisson-image-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn directory(&self, name: &str) -> (PathBuf, OwnedFd) {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap();
        let opened = File::open(&path).unwrap().into();
        (path, opened)
    }

    fn layer(&self, name: &str, members: &[Raw]) -> Result<(PathBuf, OwnedFd, ImageDone), Trouble> {
        let (path, opened) = self.directory(name);
        let limits = UnpackLayer { max_bytes: 1 << 20, max_files: 100, manner: 0 };
        let done = unpack(&opened, &mut archive(members).as_slice(), &limits)?;
        Ok((path, opened, done))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        open_up(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Layers have directories that not even their owner may change.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Type, name, mode, link target or content.
pub type Raw<'a> = (u8, &'a str, u32, &'a str);

pub fn archive(members: &[Raw]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, name, mode, rest) in members {
        let mut block = [0u8; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        let content = if *kind == b'0' { rest.as_bytes() } else { b"" };
        block[100..107].copy_from_slice(format!("{mode:07o}").as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[136..147].copy_from_slice(format!("{:011o}", 1_600_000_000).as_bytes());
        block[156] = *kind;
        if *kind != b'0' {
            block[157..157 + rest.len()].copy_from_slice(rest.as_bytes());
        }
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        block[154] = 0;
        out.extend_from_slice(&block);
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_layer_is_unpacked_without_owners_set_id_bits_and_devices() {
    let scratch = Scratch::new();
    let (path, _, done) = scratch
        .layer(
            "l",
            &[
                (b'5', "bin/", 0o555, ""),
                (b'0', "bin/su", 0o4755, "program"),
                (b'0', "secret", 0, "x"),
                (b'1', "bin/alias", 0o755, "bin/su"),
                (b'2', "sh", 0o777, "/bin/su"),
                (b'2', "out", 0o777, "../../../etc"),
                (b'3', "null", 0o666, ""),
                (b'6', "fifo", 0o666, ""),
                (b'0', "implied/deep/file", 0o644, "y"),
                (b'0', "twice", 0o644, "first"),
                (b'0', "twice", 0o644, "second"),
            ],
        )
        .unwrap();
    assert_eq!(mode(&path.join("bin/su")), 0o755);
    assert_eq!((mode(&path.join("bin")), mode(&path.join("secret"))), (0o755, 0o400));
    assert_eq!(fs::metadata(path.join("bin/su")).unwrap().ino(), fs::metadata(path.join("bin/alias")).unwrap().ino());
    assert_eq!(fs::read_link(path.join("sh")).unwrap(), Path::new("/bin/su"));
    assert_eq!(fs::read(path.join("implied/deep/file")).unwrap(), b"y");
    assert_eq!(fs::read(path.join("twice")).unwrap(), b"second");
    assert_eq!(fs::metadata(path.join("bin")).unwrap().mtime(), 1_600_000_000);
    assert!(!path.join("null").exists() && !path.join("fifo").exists());
    assert_eq!(done.left_out, 2);
}

#[test]
fn a_layer_that_would_write_elsewhere_is_refused() {
    let bad: [&[Raw]; 7] = [
        &[(b'0', "../x", 0o644, "")],
        &[(b'0', "/x", 0o644, "")],
        &[(b'2', "d", 0o777, "/tmp"), (b'0', "d/x", 0o644, "")],
        &[(b'2', "d", 0o777, ".."), (b'5', "d/x", 0o755, "")],
        &[(b'1', "x", 0o644, "../../etc/passwd")],
        &[(b'2', "l", 0o777, "/etc"), (b'1', "x", 0o644, "l/passwd")],
        &[(b'5', "d", 0o755, ""), (b'0', "d", 0o644, "")],
    ];
    for (index, members) in bad.iter().enumerate() {
        let scratch = Scratch::new();
        let trouble = scratch.layer("l", members).err().unwrap();
        assert_eq!(trouble.code, "HOSTILE_ARCHIVE", "{index}: {}", trouble.message);
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
    }
}

#[test]
fn bombs_and_torn_archives_are_refused() {
    let scratch = Scratch::new();
    let big = "x".repeat(600 << 10);
    let members = [(b'0', "a", 0o644, big.as_str()), (b'0', "b", 0o644, big.as_str())];
    assert_eq!(scratch.layer("bytes", &members).err().unwrap().code, "TOO_LARGE");
    let names: Vec<String> = (0..101).map(|number| format!("f{number}")).collect();
    let members: Vec<Raw> = names.iter().map(|name| (b'0', name.as_str(), 0o644, "")).collect();
    assert_eq!(scratch.layer("files", &members).err().unwrap().code, "TOO_LARGE");
    let (_, opened) = scratch.directory("torn");
    let whole = archive(&[(b'0', "a", 0o644, "content")]);
    let limits = UnpackLayer { max_bytes: 1 << 20, max_files: 100, manner: 0 };
    assert!(unpack(&opened, &mut &whole[..600], &limits).is_err());
}

#[test]
fn layers_are_put_together_with_whiteouts_and_share_their_files() {
    let scratch = Scratch::new();
    let (low, low_fd, _) = scratch
        .layer(
            "low",
            &[
                (b'0', "keep", 0o644, "k"),
                (b'0', "gone", 0o644, "g"),
                (b'0', "tree/a", 0o644, "a"),
                (b'0', "opaque/old", 0o644, "o"),
                (b'0', "becomes-directory", 0o644, ""),
                (b'5', "becomes-link", 0o755, ""),
                (b'0', "becomes-link/x", 0o644, ""),
            ],
        )
        .unwrap();
    let (_, high_fd, _) = scratch
        .layer(
            "high",
            &[
                (b'0', ".wh.gone", 0, ""),
                (b'0', "tree/.wh.a", 0, ""),
                (b'0', "tree/b", 0o600, "b"),
                (b'0', "opaque/.wh..wh..opq", 0, ""),
                (b'0', "opaque/new", 0o644, "n"),
                (b'0', "becomes-directory/x", 0o644, "x"),
                (b'2', "becomes-link", 0o777, "/tmp"),
            ],
        )
        .unwrap();
    let (root, root_fd) = scratch.directory("root");
    assemble(&root_fd, &[low_fd, high_fd]).unwrap();
    let mut names: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["becomes-directory", "becomes-link", "keep", "opaque", "tree"]);
    assert_eq!(fs::metadata(root.join("keep")).unwrap().ino(), fs::metadata(low.join("keep")).unwrap().ino());
    assert!(!root.join("tree/a").exists() && root.join("tree/b").exists());
    assert!(!root.join("opaque/old").exists() && root.join("opaque/new").exists());
    assert_eq!(fs::read_link(root.join("becomes-link")).unwrap(), Path::new("/tmp"));
}
