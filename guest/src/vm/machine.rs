//! The machine's root: kernel file systems, drivers, the image.

use std::{
    fs,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, mkdir},
    io::Errno,
    mount::{MountFlags, mount, mount_move},
    process::{chdir, chroot},
    system::finit_module,
};

/// How the daemon reaches the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Two serial ports: one for the host's words to this process, one for the link.
    Ports,
    /// Two listening sockets: the link's with this number, and with the next one that of this process.
    Vsock(u32),
    /// Not at all: the machine was started to see whether it starts.
    None,
}

/// Where the image is mounted.
pub const IMAGE: &str = "/image";
/// Where the parts of the host are mounted that are shown beside the image, if there are any.
pub const BESIDE: &str = "/beside";
/// The ids of their file systems; which device a disk becomes is the emulator's to say.
const IMAGE_ID: [u8; 16] = [0; 16];
const BESIDE_ID: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const DEVICES: [&str; 2] = ["/dev/vda", "/dev/vdb"];
/// Where an erofs has its id.
const ID_OFFSET: u64 = 1024 + 48;
/// The binary itself, which the chamber shows inside.
pub const GUEST: &str = "/guest";
/// The control group of everything inside the chamber.
pub const CGROUP: &str = "/sys/fs/cgroup/chamber";
const DEVICE_WITHIN: Duration = Duration::from_secs(60);

/// Leaves the boot archive, whose root cannot be pivoted away from, for a root that can.
pub fn make() -> io::Result<Link> {
    let nothing = MountFlags::empty();
    let hardened = MountFlags::NOSUID | MountFlags::NODEV;
    for (kind, path) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")] {
        directory(path)?;
        mount(kind, path, kind, nothing, None).or_else(busy)?;
    }
    let line = fs::read_to_string("/proc/cmdline")?;
    let link = read_link(&line)?;
    if link == Link::None {
        return Ok(link);
    }
    load_modules(Path::new("/modules"))?;
    directory("/root")?;
    mount("tmpfs", "/root", "tmpfs", hardened, Some(c"mode=0755"))?;
    for path in ["/dev", "/proc", "/sys"] {
        directory(&format!("/root{path}"))?;
        mount_move(path, format!("/root{path}"))?;
    }
    fs::copy("/init", format!("/root{GUEST}"))?;
    // Frees what the boot archive holds in memory.
    fs::remove_file("/init")?;
    fs::remove_dir_all("/modules")?;
    chdir("/root")?;
    mount_move(".", "/")?;
    chroot(".")?;
    chdir("/")?;
    mount_disk(&IMAGE_ID, IMAGE)?;
    if has_beside(&line) {
        mount_disk(&BESIDE_ID, BESIDE)?;
    }
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", hardened | MountFlags::NOEXEC, None)?;
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
    directory(CGROUP)?;
    Ok(link)
}

/// What everything inside the chamber may take; 0: as much as the machine has.
pub fn bound_memory(bytes: u64) -> io::Result<()> {
    let bound = if bytes == 0 { "max".to_owned() } else { bytes.to_string() };
    fs::write(format!("{CGROUP}/memory.max"), bound)
}

fn read_link(line: &str) -> io::Result<Link> {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix("caisson.link="));
    match word.map(|word| word.split_once(':').unwrap_or((word, ""))) {
        Some(("ports", "")) => Ok(Link::Ports),
        Some(("none", "")) => Ok(Link::None),
        Some(("vsock", port)) => port.parse().map(Link::Vsock).map_err(io::Error::other),
        _ => Err(io::Error::other("caisson.link is not on the kernel's command line")),
    }
}

/// Is there a second disk?
fn has_beside(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "caisson.beside")
}

/// In the order of their names, which is that of their dependencies.
fn load_modules(folder: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for path in names {
        let file = fs::File::open(&path)?;
        match finit_module(&file, c"", 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(io::Error::other(format!("{}: {errno}", path.display()))),
        }
    }
    Ok(())
}

fn mount_disk(id: &[u8; 16], place: &str) -> io::Result<()> {
    directory(place)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
    mount(wait_for(id)?, place, "erofs", flags, None).map_err(Into::into)
}

fn wait_for(id: &[u8; 16]) -> io::Result<&'static str> {
    let until = Instant::now() + DEVICE_WITHIN;
    loop {
        if let Some(device) = DEVICES.into_iter().find(|device| id_of(device).is_ok_and(|found| found == *id)) {
            return Ok(device);
        }
        if Instant::now() > until {
            return Err(io::Error::other("a disk does not appear"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn id_of(device: &str) -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open(device)?.read_exact_at(&mut id, ID_OFFSET)?;
    Ok(id)
}

pub fn directory(path: &str) -> io::Result<()> {
    mkdir(path, Mode::from_raw_mode(0o755)).or_else(exists)
}

pub fn exists(errno: Errno) -> io::Result<()> {
    if errno == Errno::EXIST { Ok(()) } else { Err(errno.into()) }
}

/// The kernel may have mounted it by itself.
fn busy(errno: Errno) -> io::Result<()> {
    if errno == Errno::BUSY { Ok(()) } else { Err(errno.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_link_is_on_the_kernels_command_line() {
        assert_eq!(read_link("quiet caisson.link=ports panic=-1\n").unwrap(), Link::Ports);
        assert_eq!(read_link("caisson.link=vsock:1024").unwrap(), Link::Vsock(1024));
        assert_eq!(read_link("caisson.link=none").unwrap(), Link::None);
        for line in ["", "caisson.link=", "caisson.link=vsock", "caisson.link=vsock:x", "caisson.link=ports:1"] {
            assert!(read_link(line).is_err(), "{line}");
        }
        assert!(has_beside("caisson.link=ports caisson.beside\n"));
        assert!(!has_beside("caisson.link=ports caisson.besides"));
    }
}
