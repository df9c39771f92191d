//! `caisson-guest container --listen PATH`: the first process of an engine's container. It has no privilege there; it
//! makes namespaces of its own, as bubblewrap does on the host, and in them becomes the guest. So the same wall stands
//! in every container, whoever made it, and the container is one more around it.

mod root;

use std::{
    ffi::{CString, OsString},
    fs, io,
    os::fd::OwnedFd,
    path::Path,
    process::ExitCode,
};

use rustix::{
    io::{Errno, fcntl_dupfd_cloexec},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::{Signal, WaitOptions, getegid, geteuid, kill_process, set_parent_process_death_signal, umask, waitpid},
    thread::UnshareFlags,
};

use crate::keeper::privilege::is_host_root;
use crate::sys::{
    descriptors::close_range,
    launching::{exec, place_descriptor},
    unshare::unshare,
    worker::{Forked, exit_now, fork},
};

const DOOR: i32 = 3;
const EXIT_USAGE: u8 = 70;

pub fn main(args: &[OsString]) -> ExitCode {
    let [option, path] = args else { return usage() };
    if option != "--listen" {
        return usage();
    }
    match run(Path::new(path)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("caisson-guest container: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: caisson-guest container --listen PATH");
    ExitCode::from(EXIT_USAGE)
}

fn run(path: &Path) -> io::Result<u8> {
    // In an engine without root, the container's root is the engine's own user.
    if is_host_root() {
        return Err(io::Error::other("a container's guest must not be the host's root"));
    }
    let door = door(path)?;
    enter_namespaces()?;
    match fork()? {
        Forked::Child => {
            let error = become_guest(&door).err().map_or_else(String::new, |error| error.to_string());
            eprintln!("caisson-guest container: the guest's root: {error}");
            exit_now(i32::from(EXIT_USAGE))
        }
        Forked::Parent(pid) => {
            drop(door);
            // The first process of a container also reaps what nobody else does.
            loop {
                match waitpid(None, WaitOptions::empty()) {
                    Ok(Some((ended, status))) if ended == pid => {
                        let signal = status.terminating_signal().map(|signal| 128 + signal);
                        return Ok(status.exit_status().or(signal).unwrap_or(1) as u8);
                    }
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => {
                        let _ = kill_process(pid, Signal::KILL);
                        return Err(errno.into());
                    }
                }
            }
        }
    }
}

/// The socket that the daemon connects to, in a directory of the host's that only it can reach.
fn door(path: &Path) -> io::Result<OwnedFd> {
    let _ = fs::remove_file(path);
    let door = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = bind(&door, &SocketAddrUnix::new(path)?);
    umask(before);
    bound?;
    listen(&door, 16)?;
    Ok(door)
}

/// Root of namespaces in which this one user is all there is.
fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(named("a user namespace"))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    let others = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    unshare(others).map_err(named("namespaces"))
}

fn become_guest(door: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    root::enter()?;
    // It may have that very number, and close itself at exec.
    place_descriptor(&fcntl_dupfd_cloexec(door, 16)?, DOOR)?;
    close_range(DOOR as u32 + 1, u32::MAX)?;
    let words = [root::GUEST, "init", "--listen-fd", &DOOR.to_string()];
    let argv: Vec<CString> = words.iter().map(|word| CString::new(*word).unwrap_or_default()).collect();
    Err(exec(&argv[0], &argv, &[]).into())
}

pub fn named(doing: &str) -> impl Fn(Errno) -> io::Error {
    move |errno| io::Error::other(format!("{doing}: {errno}"))
}
