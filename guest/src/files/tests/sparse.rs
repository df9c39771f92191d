//! Files with holes, as GNU tar packs them.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    process::Command,
};

use super::{Sandbox, both, code};
use crate::{
    files::tar::reader::{Event, Reader},
    proto::link::{Failure, FileReply, UnpackCall, file_call::Call},
};

const FORMS: [&[&str]; 4] = [
    &["--format=gnu"],
    &["--format=pax", "--sparse-version=0.0"],
    &["--format=pax", "--sparse-version=0.1"],
    &["--format=pax", "--sparse-version=1.0"],
];
const SIZE: u64 = 64 << 20;
const STEP: u64 = 1 << 20;

/// A file of a size that memory would notice, with more pieces than a header holds and a hole at its end.
fn make(sandbox: &Sandbox, form: &[&str]) -> Vec<u8> {
    let mut file = File::create(sandbox.join("sparse")).unwrap();
    for number in 1..40 {
        file.seek(SeekFrom::Start(number * STEP)).unwrap();
        file.write_all(format!("piece {number}").as_bytes()).unwrap();
    }
    file.set_len(SIZE).unwrap();
    File::create(sandbox.join("all-hole")).unwrap().set_len(4 * STEP).unwrap();
    fs::write(sandbox.join("plain"), "plain").unwrap();
    let tar = Command::new("tar")
        .args(form)
        .args(["--sparse", "-cf", "-", "sparse", "all-hole", "plain"])
        .current_dir(sandbox.join(""))
        .output()
        .unwrap();
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    tar.stdout
}

fn unpack(sandbox: &Sandbox, archive: &[u8], max_bytes: u64) -> Result<FileReply, Failure> {
    let call = UnpackCall { stream: 1, path: "/to".into(), max_bytes, max_files: 100, any_links: false };
    let pieces: Vec<&[u8]> = archive.chunks(301).collect();
    sandbox.converse(Call::Unpack(call), &pieces).answer()
}

#[test]
fn files_with_holes_are_unpacked_with_their_holes_in_every_form() {
    for form in FORMS {
        both(|sandbox| {
            let archive = make(sandbox, form);
            assert!(archive.len() < 1 << 20, "{form:?}: tar wrote no holes");
            let reply = unpack(sandbox, &archive, 1 << 30).unwrap();
            assert_eq!(reply.bytes, SIZE + 4 * STEP + 5, "holes count: a reader of the file meets them");
            for name in ["sparse", "all-hole", "plain"] {
                let same =
                    fs::read(sandbox.join(name)).unwrap() == fs::read(sandbox.join(&format!("to/{name}"))).unwrap();
                assert!(same, "{form:?} {name}");
            }
            let unpacked = fs::metadata(sandbox.join("to/sparse")).unwrap();
            assert!(unpacked.blocks() * 512 < SIZE / 4, "{form:?}: {} blocks", unpacked.blocks());
        });
    }
}

#[test]
fn holes_count_towards_the_bound() {
    for form in FORMS {
        both(|sandbox| {
            let archive = make(sandbox, form);
            assert_eq!(code(unpack(sandbox, &archive, SIZE / 2)), "TOO_LARGE");
            assert!(!sandbox.join("to").exists());
        });
    }
}

#[test]
fn maps_that_lie_give_no_file_another_size_than_was_said() {
    let sandbox = Sandbox::new(false);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for form in FORMS {
        let good = make(&sandbox, form);
        for _ in 0..400 {
            let mut bytes = good.clone();
            for _ in 0..1 + random() % 3 {
                // The maps are in the first blocks.
                let at = random() % 4096.min(bytes.len());
                bytes[at] = [b'0' + (random() % 10) as u8, random() as u8, b'\n', 0][random() % 4];
            }
            for block in bytes[..4096].chunks_exact_mut(512).filter(|block| &block[257..262] == b"ustar") {
                super::archives::forge(block, 0, &[block[0]].clone());
            }
            let (mut said, mut filled) = (None, 0_u64);
            let mut reader = Reader::default();
            for piece in bytes.chunks(1 + random() % 700) {
                let taken = reader.take::<&'static str>(piece, &mut |event| {
                    match event {
                        Event::Member(member) => (said, filled) = (Some(member.size), 0),
                        Event::Content(bytes) => filled += bytes.len() as u64,
                        Event::Hole(bytes) => filled += bytes,
                        Event::Done => assert_eq!(Some(filled), said),
                    }
                    assert!(said.is_some_and(|said| filled <= said));
                    Ok(())
                });
                if taken.is_err() {
                    break;
                }
            }
        }
    }
}
