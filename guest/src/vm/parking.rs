//! A machine whose wall was closed before anybody asked for it: everything that a copy of it must have of its own is at hand,
//! so that becoming one is a few calls. Nothing of it can be reached from inside.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::FileExt},
};

use rustix::{
    fs::{Mode, OFlags},
    mount::{UnmountFlags, mount_bind, unmount},
    process::{Pid, chdir},
    system::sethostname,
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space},
};

use crate::{
    sys::{mount_attr::make_writable, unshare::unshare},
    wall::{hosts, machine_id},
};

const MAX_NAME: usize = 64;
const MOMENTARY: &str = "/run";

pub struct Parked {
    hostname: Kept,
    hosts: Kept,
    machine_id: Kept,
}

/// A file of the sandbox's, and how much is in it.
struct Kept {
    file: File,
    length: usize,
}

impl Parked {
    /// This process enters the guest's namespace of names, and stays there: it has no use for another name.
    pub fn new(guest: Pid) -> io::Result<Self> {
        let first = first_process(guest)?;
        let namespace = |kind: &str| File::open(format!("/proc/{first}/ns/{kind}"));
        move_into_link_name_space(namespace("uts")?.as_fd(), Some(LinkNameSpaceType::HostNameAndNISDomainName))?;
        let own = File::open("/proc/self/ns/mnt")?;
        // The kernel starts its first process with a root directory that it shares.
        unshare(UnshareFlags::FS)?;
        move_into_link_name_space(namespace("mnt")?.as_fd(), Some(LinkNameSpaceType::Mount))?;
        let files = open_files();
        move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Mount))?;
        chdir("/")?;
        let [hostname, hosts, machine_id] = files?;
        Ok(Self { hostname: Kept::new(hostname)?, hosts: Kept::new(hosts)?, machine_id: Kept::new(machine_id)? })
    }

    /// A name and a machine id that no other copy has.
    pub fn rename(&self, name: &str) -> io::Result<()> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_name) {
            return Err(io::Error::other("not a host's name"));
        }
        sethostname(name.as_bytes())?;
        self.hostname.write(&format!("{name}\n"))?;
        self.hosts.write(&hosts(name))?;
        self.machine_id.write(&machine_id()?)
    }
}

impl Kept {
    fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len() as usize;
        Ok(Self { file, length })
    }

    /// Names of sandboxes are equally long, and so is what is made of them: hardly ever is anything to be cut off.
    fn write(&self, content: &str) -> io::Result<()> {
        self.file.write_all_at(content.as_bytes(), 0)?;
        if content.len() < self.length { self.file.set_len(content.len() as u64) } else { Ok(()) }
    }
}

/// The first process of the guest's namespaces, which the one that started them waits for.
fn first_process(guest: Pid) -> io::Result<i32> {
    let number = guest.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children"))?;
    children.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or(io::ErrorKind::NotFound.into())
}

/// Of the sandbox's root, which is read-only where it is attached: through a second mount of it, which is attached for a moment
/// over the place of another. Nothing runs in the sandbox yet.
fn open_files() -> io::Result<[File; 3]> {
    mount_bind("/", MOMENTARY)?;
    let opened = open_writable();
    unmount(MOMENTARY, UnmountFlags::DETACH)?;
    opened
}

fn open_writable() -> io::Result<[File; 3]> {
    let look = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(MOMENTARY, look, Mode::empty())?;
    make_writable(root.as_fd())?;
    let open = |name: &str| {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&root, name, flags, Mode::empty()).map(File::from)
    };
    Ok([open("etc/hostname")?, open("etc/hosts")?, open("etc/machine-id")?])
}
