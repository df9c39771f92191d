//! The guest's root inside a container: a tmpfs, with what the container shows in `/.caisson/shown` at its own places.

use std::{
    ffi::CStr,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, symlink},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, mount_remount,
        unmount,
    },
    process::{chdir, pivot_root},
};

use super::named;

/// Where the guest binary is, in the container and then in the guest's root.
const BINARY: &str = "/.caisson/guest";
pub const GUEST: &str = "/run/caisson/guest";
/// What the container shows of the host, each at its path below this, and links as they are.
const SHOWN: &str = "/.caisson/shown";
const NEW: &str = "/.caisson/root";

const HARDENED: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
/// Private, empty and in memory; the seal bounds their size.
const PRIVATE: [(&str, &CStr); 4] =
    [("home", c"mode=0755"), ("run", c"mode=0755"), ("tmp", c"mode=1777"), ("var/tmp", c"mode=1777")];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

pub fn enter() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).map_err(named("private mounts"))?;
    mount("tmpfs", NEW, "tmpfs", HARDENED, Some(c"mode=0755")).map_err(named("a tmpfs"))?;
    for name in ["etc", "proc", "dev"] {
        directory(&new(name))?;
    }
    show(Path::new(SHOWN), Path::new(NEW))?;
    devices()?;
    for (path, options) in PRIVATE {
        directory(&new(path))?;
        mount("tmpfs", new(path), "tmpfs", HARDENED, Some(options)).map_err(named(path))?;
    }
    mount("proc", new("proc"), "proc", HARDENED | MountFlags::NOEXEC, None).map_err(named("/proc"))?;
    // Read-only, so that nothing inside can change it by way of /proc/self/exe.
    directory(&new("run/caisson"))?;
    fs::write(new("run/caisson/guest"), "")?;
    bind(Path::new(BINARY), &new("run/caisson/guest"))?;
    chdir(NEW)?;
    pivot_root(".", ".").map_err(named("pivot_root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(named("leaving the container's root"))?;
    Ok(chdir("/")?)
}

/// Rebuilds a tree of empty directories, and binds each mount and file in it. What is mounted there ends the descent.
fn show(from: &Path, to: &Path) -> io::Result<()> {
    let device = |path: &Path| rustix::fs::lstat(path).map(|stat| stat.st_dev);
    let own = device(from)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, place) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &place)?;
        } else if kind.is_dir() && device(&source)? == own && !is_mount(&source)? {
            directory(&place)?;
            show(&source, &place)?;
        } else if kind.is_dir() {
            directory(&place)?;
            bind(&source, &place)?;
        } else if kind.is_file() {
            fs::write(&place, "")?;
            bind(&source, &place)?;
        }
    }
    Ok(())
}

/// Also when it is of the same file system as what lies around it.
fn is_mount(path: &Path) -> io::Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|point| Path::new(point) == path))
}

fn bind(source: &Path, place: &Path) -> io::Result<()> {
    mount_bind_recursive(source, place).map_err(named(&source.display().to_string()))?;
    let flags = HARDENED | MountFlags::RDONLY | MountFlags::BIND;
    mount_remount(place, flags, c"").map_err(named(&place.display().to_string()))
}

fn devices() -> io::Result<()> {
    mount("tmpfs", new("dev"), "tmpfs", HARDENED, Some(c"mode=0755")).map_err(named("/dev"))?;
    for name in DEVICES {
        let place = new("dev").join(name);
        fs::write(&place, "")?;
        mount_bind_recursive(format!("/dev/{name}"), &place).map_err(named(name))?;
        mount_remount(&place, MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::BIND, c"").map_err(named(name))?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, new("dev").join(name))?;
    }
    let pts = new("dev/pts");
    directory(&pts)?;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", &pts, "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, Some(options)).map_err(named("devpts"))?;
    let shm = new("dev/shm");
    directory(&shm)?;
    mount("tmpfs", &shm, "tmpfs", HARDENED, Some(c"mode=1777")).map_err(named("/dev/shm"))?;
    Ok(symlink("pts/ptmx", new("dev/ptmx"))?)
}

fn new(path: &str) -> PathBuf {
    Path::new(NEW).join(path)
}

fn directory(path: &Path) -> io::Result<()> {
    let mut made = PathBuf::new();
    for part in path {
        made.push(part);
        match rustix::fs::mkdir(&made, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
