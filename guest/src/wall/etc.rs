//! The few files of /etc that describe the sandbox itself, and its host name.

use std::fmt::Write;

use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    place::Ground,
    step::{During, SealError, Step},
};
use crate::proto::link::Seal;

pub fn write(seal: &Seal, ground: &Ground) -> Result<(), SealError> {
    rustix::system::sethostname(seal.hostname.as_bytes()).during(Step::Mounts, "the host name")?;
    let etc = ground.directory("/etc").during(Step::Mounts, "/etc")?;
    let files = [
        ("passwd", passwd(seal)),
        ("group", group(seal)),
        ("hosts", hosts(&seal.hostname)),
        ("hostname", format!("{}\n", seal.hostname)),
        // Answered on loopback or, with no network, refused at once instead of timing out.
        ("resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n".to_owned()),
        ("nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n".to_owned()),
        ("machine-id", machine_id().during(Step::Mounts, "random bytes")?),
    ];
    for (name, content) in files {
        ground.write(&etc, name, content.as_bytes(), 0o644).during(Step::Mounts, format!("/etc/{name}"))?;
    }
    for (name, content) in &seal.etc {
        ground.write(&etc, name, content.as_bytes(), 0o644).during(Step::Mounts, format!("/etc/{name}"))?;
    }
    ground.link(&etc, "mtab", "../proc/self/mounts").during(Step::Mounts, "/etc/mtab")
}

fn passwd(seal: &Seal) -> String {
    let Seal { user, uid, gid, home, .. } = seal;
    format!(
        "root:x:0:0:root:/root:/bin/sh\n{user}:x:{uid}:{gid}::{home}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n"
    )
}

fn group(seal: &Seal) -> String {
    let Seal { user, gid, .. } = seal;
    format!("root:x:0:\n{user}:x:{gid}:\nnogroup:x:65534:\n")
}

pub fn hosts(hostname: &str) -> String {
    format!("127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost ip6-loopback\n")
}

/// Random for each sandbox: it says nothing about the host.
pub fn machine_id() -> rustix::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let mut text = String::with_capacity(33);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    Ok(text)
}
