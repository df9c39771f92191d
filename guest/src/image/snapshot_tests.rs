//! Archives of snapshots: what is unpacked of them as it was, and what is refused, when they are checked as when they are unpacked.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::PathBuf,
};

use rustix::fs::getxattr;

use super::{
    Trouble,
    check::check,
    layer::unpack,
    tests::{Raw, Scratch, archive, mode},
};
use crate::proto::keeper::{CheckArchive, ImageDone, Manner, UnpackLayer};

const MAX_BYTES: u64 = 1 << 20;
const MAX_FILES: u64 = 100;

/// Checked and unpacked; both must come to the same.
fn both(scratch: &Scratch, name: &str, bytes: &[u8], manner: Manner) -> Result<(PathBuf, ImageDone), Trouble> {
    let limits = CheckArchive { max_bytes: MAX_BYTES, max_files: MAX_FILES, manner: manner.into() };
    let checked = check(&mut &*bytes, &limits);
    let (path, opened) = scratch.directory(name);
    let limits = UnpackLayer { max_bytes: MAX_BYTES, max_files: MAX_FILES, manner: manner.into() };
    let unpacked = unpack(&opened, &mut &*bytes, &limits);
    assert_eq!(checked.is_ok(), unpacked.is_ok(), "{name}: {:?} {:?}", checked.err(), unpacked.err());
    match (checked, unpacked) {
        (Ok(_), Ok(done)) => Ok((path, done)),
        (Err(checked), Err(unpacked)) => {
            assert_eq!(checked.code, unpacked.code, "{name}: {} / {}", checked.message, unpacked.message);
            Err(checked)
        }
        _ => unreachable!(),
    }
}

/// A member behind an extended header of one line.
fn extended(line: &str, member: Raw) -> Vec<u8> {
    let mut bytes = archive(&[(b'0', "PaxHeader", 0o644, line)]);
    bytes.truncate(bytes.len() - 1024);
    bytes[156] = b'x';
    bytes[148..156].fill(b' ');
    let sum: u64 = bytes[..512].iter().map(|byte| u64::from(*byte)).sum();
    bytes[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    bytes[154] = 0;
    bytes.extend(archive(&[member]));
    bytes
}

fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part[..part.len() - 1024].to_vec()).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn a_layer_of_an_overlay_is_unpacked_as_it_was_and_what_lies_beside_it_is_not() {
    let scratch = Scratch::new();
    let bytes = joined(&[
        archive(&[
            (b'5', "applies", 0o755, ""),
            (b'0', "applies/journal", 0o644, "move everything"),
            (b'0', "copied", 0o644, ""),
            (b'0', "manifest.json", 0o644, "[]"),
            (b'5', "upper", 0o755, ""),
            (b'0', "upper/secret", 0, "x"),
            (b'0', "upper/open", 0o666, "y"),
            (b'1', "upper/again", 0o666, "upper/open"),
            (b'2', "upper/out", 0o777, "/etc/shadow"),
            (b'3', "upper/gone", 0, ""),
            (b'1', "upper/gone-too", 0, "upper/gone"),
            (b'6', "upper/pipe", 0o600, ""),
        ]),
        extended("38 SCHILY.xattr.user.overlay.opaque=y\n", (b'5', "upper/closed", 0o500, "")),
        extended("23 mtime=1600000000.25\n", (b'0', "upper/closed/file", 0o644, "z")),
    ]);
    let (path, _) = both(&scratch, "layer", &bytes, Manner::Overlay).unwrap();
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copied", "upper"]);
    let upper = path.join("upper");
    assert_eq!((mode(&upper.join("secret")), mode(&upper.join("open"))), (0, 0o666));
    assert_eq!(mode(&upper.join("closed")), 0o500);
    let stat = |name: &str| fs::symlink_metadata(upper.join(name)).unwrap();
    assert_eq!(stat("open").ino(), stat("again").ino());
    assert!(stat("gone").file_type().is_char_device() && stat("gone").rdev() == 0);
    assert_eq!(stat("gone").ino(), stat("gone-too").ino());
    assert!(stat("pipe").file_type().is_fifo());
    assert_eq!(stat("closed").mtime(), 1_600_000_000);
    assert_eq!((stat("closed/file").mtime(), stat("closed/file").mtime_nsec()), (1_600_000_000, 250_000_000));
    let mut value = [0; 4];
    assert_eq!(getxattr(upper.join("closed"), "user.overlay.opaque", &mut value[..]).unwrap(), 1);
}

#[test]
fn what_caisson_does_not_write_is_refused() {
    let common: [&[Raw]; 10] = [
        &[(b'5', "upper", 0o755, ""), (b'0', "upper/../../x", 0o644, "")],
        &[(b'0', "/x", 0o644, "")],
        &[(b'5', "upper", 0o755, ""), (b'2', "upper/d", 0o777, "/tmp"), (b'0', "upper/d/x", 0o644, "")],
        &[(b'5', "upper", 0o755, ""), (b'1', "upper/x", 0o644, "../../etc/passwd")],
        &[(b'5', "upper", 0o755, ""), (b'1', "upper/x", 0o644, "upper")],
        &[(b'5', "upper", 0o755, ""), (b'0', "upper/s", 0o4755, "")],
        &[(b'5', "upper", 0o2755, "")],
        &[(b'5', "upper", 0o755, ""), (b'0', "upper/x", 0o644, "1"), (b'0', "upper/x", 0o644, "2")],
        &[(b'5', "upper", 0o755, ""), (b'5', "upper", 0o755, "")],
        &[(b'0', "upper/x", 0o644, "no directory came before")],
    ];
    for manner in [Manner::Files, Manner::Tree, Manner::Overlay] {
        for (index, members) in common.iter().enumerate() {
            let scratch = Scratch::new();
            let trouble = both(&scratch, "a", &archive(members), manner).err().unwrap();
            assert_eq!(trouble.code, "HOSTILE_ARCHIVE", "{manner:?} {index}: {}", trouble.message);
        }
        for line in ["37 SCHILY.xattr.security.capability=\n", "41 SCHILY.xattr.trusted.overlay.opaque=y\n"] {
            let bytes = extended(line, (b'5', "upper", 0o755, ""));
            assert!(both(&Scratch::new(), "a", &bytes, manner).is_err(), "{line}");
        }
    }
    let links: [Raw; 3] = [(b'2', "l", 0o777, "x"), (b'3', "null", 0o666, ""), (b'6', "fifo", 0o666, "")];
    for link in links {
        assert!(both(&Scratch::new(), "a", &archive(&[link]), Manner::Files).is_err(), "{link:?}");
    }
    assert!(both(&Scratch::new(), "a", &archive(&links[1..2]), Manner::Tree).is_err());
    let disk: [Raw; 2] = [(b'5', "upper", 0o755, ""), (b'4', "upper/disk", 0o666, "")];
    assert!(both(&Scratch::new(), "a", &archive(&disk), Manner::Overlay).is_err());
}

#[test]
fn parts_of_a_snapshot_are_the_owners_alone() {
    let scratch = Scratch::new();
    let members = [(b'5', "./", 0o777, ""), (b'0', "./home.tar", 0o777, "h"), (b'5', "output", 0o777, "")];
    let (path, done) = both(&scratch, "parts", &archive(&members), Manner::Files).unwrap();
    assert_eq!((mode(&path.join("home.tar")), done.files), (0o600, 3));
    let many: Vec<Raw> = (0..101).map(|_| (b'5', "./", 0o755, "")).collect();
    assert_eq!(both(&scratch, "many", &archive(&many), Manner::Files).err().unwrap().code, "TOO_LARGE");
}
