//! The guest's namespaces inside the machine: the same ground that it has in a container, so that the same wall
//! stands on it. A command that broke the wall would be nobody in particular of an otherwise empty machine.

use std::{
    ffi::{CStr, CString},
    fs, io,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{Mode, symlink},
    io::{Errno, fcntl_dupfd_cloexec},
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount},
    process::{
        DumpableBehavior, Pid, Signal, chdir, pivot_root, set_dumpable_behavior, set_parent_process_death_signal,
        waitpid,
    },
    thread::{Gid, Uid, UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::machine::{BESIDE, CGROUP, GUEST, IMAGE, directory};
use crate::sys::{
    descriptors::close_range,
    launching::{exec, place_descriptor},
    unshare::unshare,
    worker::{Forked, exit_now, fork},
};

/// Nobody's number in this machine.
const UID: u32 = 1000;
const ROOT: &str = "/chamber";
const INSIDE: &str = "/run/caisson/guest";
const DOOR: i32 = 3;
const HARDENED: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
const READ_ONLY: MountFlags = HARDENED.union(MountFlags::RDONLY).union(MountFlags::BIND);

/// Private, empty and in memory; the seal bounds their size.
const PRIVATE: [(&str, &CStr); 4] =
    [("/home", c"mode=0755"), ("/run", c"mode=0755"), ("/tmp", c"mode=1777"), ("/var/tmp", c"mode=1777")];
/// Of the image's top level, what the chamber has of its own.
const OWN: [&str; 13] =
    ["boot", "dev", "etc", "home", "lost+found", "media", "mnt", "proc", "root", "run", "sys", "tmp", "var"];
/// Of the image's /var, what the sandbox has of its own.
const OWN_VAR: [&str; 1] = ["tmp"];
/// Of the image's /etc, what the guest writes.
const WRITTEN: [&str; 8] =
    ["passwd", "group", "hosts", "hostname", "resolv.conf", "nsswitch.conf", "machine-id", "mtab"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Starts the guest; its exit is the exit of the process that is returned.
pub fn start(door: OwnedFd) -> io::Result<Pid> {
    directory(ROOT)?;
    match fork()? {
        Forked::Parent(pid) => Ok(pid),
        Forked::Child => {
            let code = outer(&door).unwrap_or_else(|error| {
                eprintln!("caisson: the guest's namespaces: {error}");
                70
            });
            exit_now(code)
        }
    }
}

/// Becomes nobody, then root of namespaces of nobody's, and waits for the first process in them.
fn outer(door: &OwnedFd) -> io::Result<i32> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    fs::write(format!("{CGROUP}/cgroup.procs"), "0")?;
    let (uid, gid) = (Uid::from_raw(UID), Gid::from_raw(UID));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    // Changing the user has closed this process's files in /proc to itself.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    unshare(UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {UID} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {UID} 1"))?;
    unshare(
        UnshareFlags::NEWNS
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWCGROUP,
    )?;
    match fork()? {
        Forked::Child => {
            let error = inner(door).err().map_or_else(String::new, |error| error.to_string());
            eprintln!("caisson: the guest's root: {error}");
            exit_now(70)
        }
        Forked::Parent(pid) => {
            let (_, status) = waitpid(Some(pid), rustix::process::WaitOptions::empty())?.ok_or(Errno::CHILD)?;
            Ok(status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0)))
        }
    }
}

/// The first process of the namespaces: makes their root and becomes the guest.
fn inner(door: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    mount("tmpfs", ROOT, "tmpfs", HARDENED, Some(c"mode=0755"))?;
    show_image()?;
    devices()?;
    for (path, options) in PRIVATE {
        parents(path)?;
        mount("tmpfs", format!("{ROOT}{path}"), "tmpfs", HARDENED, Some(options))?;
    }
    show_beside()?;
    directory(&format!("{ROOT}/proc"))?;
    mount("proc", format!("{ROOT}/proc"), "proc", HARDENED | MountFlags::NOEXEC, None)?;
    // Read-only, so that nothing inside can change it by way of /proc/self/exe.
    parents(INSIDE)?;
    fs::write(format!("{ROOT}{INSIDE}"), "")?;
    bind(GUEST, INSIDE)?;
    chdir(ROOT)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    // It may have that very number, and close itself at exec.
    place_descriptor(&fcntl_dupfd_cloexec(door, 16)?, DOOR)?;
    close_range(DOOR as u32 + 1, u32::MAX)?;
    let argv: Vec<CString> = [INSIDE, "init", "--listen-fd", &DOOR.to_string()]
        .iter()
        .map(|word| CString::new(*word).unwrap_or_default())
        .collect();
    Err(exec(&argv[0], &argv, &[]).into())
}

/// Everything of the image but what the sandbox has of its own.
fn show_image() -> io::Result<()> {
    show(Path::new(IMAGE), &OWN)?;
    for (name, except) in [("etc", &WRITTEN[..]), ("var", &OWN_VAR[..])] {
        let folder = Path::new(IMAGE).join(name);
        directory(&format!("{ROOT}/{name}"))?;
        // An image's may be a link, which would lead elsewhere.
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            show(&folder, except)?;
        }
    }
    Ok(())
}

fn show(folder: &Path, except: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let source = entry.path();
        if name.to_str().is_none_or(|name| except.contains(&name)) {
            continue;
        }
        let Some(inside) = source.to_str().and_then(|path| path.strip_prefix(IMAGE)) else { continue };
        let kind = entry.file_type()?;
        let place = format!("{ROOT}{inside}");
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &place)?;
        } else if kind.is_dir() {
            directory(&place)?;
            bind(&source, inside)?;
        } else if kind.is_file() {
            fs::write(&place, "")?;
            bind(&source, inside)?;
        }
    }
    Ok(())
}

/// Parts of the host at their own paths. On their disk they have the numbers of their places in a list.
fn show_beside() -> io::Result<()> {
    let list = match fs::read_to_string(format!("{BESIDE}/paths")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        list => list?,
    };
    for (number, path) in list.split_terminator('\0').enumerate() {
        show_one(Path::new(&format!("{BESIDE}/{number}")), path)
            .map_err(|error| io::Error::other(format!("{path}: {error}")))?;
    }
    Ok(())
}

fn show_one(source: &Path, path: &str) -> io::Result<()> {
    if source.is_dir() {
        parents(path)?;
    } else {
        parents(path.rsplit_once('/').map_or("", |(folder, _)| folder))?;
        fs::write(format!("{ROOT}{path}"), "")?;
    }
    bind(source, path)
}

fn bind(source: impl AsRef<Path>, inside: &str) -> io::Result<()> {
    let place = format!("{ROOT}{inside}");
    mount_bind(source.as_ref(), &place)?;
    mount_remount(&place, READ_ONLY, c"")?;
    Ok(())
}

fn devices() -> io::Result<()> {
    let dev = format!("{ROOT}/dev");
    directory(&dev)?;
    mount("tmpfs", &dev, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0755"))?;
    for name in DEVICES {
        let place = format!("{dev}/{name}");
        fs::write(&place, "")?;
        mount_bind(format!("/dev/{name}"), &place)?;
        mount_remount(&place, MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::BIND, c"")?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, format!("{dev}/{name}"))?;
    }
    for (name, kind, options) in
        [("pts", "devpts", c"newinstance,ptmxmode=0666,mode=620"), ("shm", "tmpfs", c"mode=1777")]
    {
        let place = format!("{dev}/{name}");
        rustix::fs::mkdir(&place, Mode::from_raw_mode(0o755))?;
        let flags = if kind == "tmpfs" { HARDENED } else { MountFlags::NOSUID | MountFlags::NOEXEC };
        mount(kind, &place, kind, flags, Some(options))?;
    }
    symlink("pts/ptmx", format!("{dev}/ptmx")).map_err(Into::into)
}

/// The directories on the way to a path inside, and the path itself if nothing is there.
fn parents(path: &str) -> io::Result<()> {
    let mut at = String::from(ROOT);
    let mut rest = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = rest.next() {
        at = format!("{at}/{part}");
        if rest.peek().is_some() || path != INSIDE {
            directory(&at)?;
        }
    }
    Ok(())
}
