//! Starting a sandbox's outer process.

use std::{
    ffi::CString,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, open, unlink},
    io::{Errno, fcntl_dupfd_cloexec, write},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, chdir, getpid, getppid, set_parent_process_death_signal, setsid, umask},
    thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::{
    failure::Failure,
    groups::Groups,
    handed::{self, Memories},
    privilege::is_host_root,
    process, reach, socket,
};
use crate::{
    proto::keeper::Launch,
    sys::{
        descriptors::close_range,
        launching::{exec, place_closing, place_descriptor, reset_signals},
        worker::{Forked, exit_now},
    },
    wall::forbid_cores,
};

/// Numbers of descriptors in the started process, beside 0–2.
const LISTENING: RawFd = 3;
const STATUS: RawFd = 4;
/// The first of those that are handed over.
const HANDED: RawFd = 5;

/// A process that was forked and has not become its program yet.
pub struct Starting {
    pub sandbox: String,
    pub pid: Pid,
    pub start_time: u64,
    /// Ends when the program runs; until then carries why it does not.
    pub status: OwnedFd,
    pub socket: String,
}

pub fn begin(launch: Launch, memories: &mut Memories) -> Result<Starting, Failure> {
    if launch.argv.is_empty() || launch.sandbox.is_empty() {
        return Err(Failure::new("INVALID_INPUT", "a launch needs a program and a sandbox"));
    }
    if (launch.uid != 0 || launch.gid != 0) && !is_host_root() {
        return Err(Failure::new("INVALID_INPUT", "only a keeper of root's can start a sandbox under another uid"));
    }
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |errno| Failure::errno("SANDBOX_FAILED", doing, errno)
    };
    let plan = Plan::new(&launch)?;
    let mut groups = Groups::open(&launch.cgroups)?;
    let (status_read, status_write) = pipe_with(PipeFlags::CLOEXEC).map_err(failed("making a pipe"))?;
    let null =
        open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed("opening /dev/null"))?;
    let log = open(
        &launch.log,
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o600),
    )
    .map_err(failed("opening the launch log"))?;
    let owner = (launch.uid != 0).then_some((launch.uid, launch.gid));
    let handed = handed::open_all(&launch.handed, memories, owner)?;
    let listening = match launch.socket.as_str() {
        // A guest that makes its own door gets nothing in its place.
        "" => rustix::io::dup(&null),
        path => socket::listening(Path::new(path)),
    };
    let listening = listening.map_err(failed("making the sandbox's socket"))?;

    let stdio = Descriptors { null, log, listening, status: status_write, handed };
    match groups.fork() {
        Err(errno) => {
            let _ = unlink(&launch.socket);
            Err(failed("forking")(errno))
        }
        Ok(Forked::Child) => plan.run(&stdio, &groups),
        Ok(Forked::Parent(pid)) => {
            let start_time = process::stat(pid.as_raw_nonzero().get()).map_or(0, |stat| stat.start_time);
            Ok(Starting { sandbox: launch.sandbox, pid, start_time, status: status_read, socket: launch.socket })
        }
    }
}

impl Starting {
    /// To be asked when `status` is readable: did the program start?
    pub fn outcome(&self) -> Result<(), Failure> {
        let mut told = String::new();
        let copy =
            rustix::io::dup(&self.status).map_err(|errno| Failure::errno("SANDBOX_FAILED", "starting", errno))?;
        let _ = std::fs::File::from(copy).take(512).read_to_string(&mut told);
        if told.is_empty() {
            return Ok(());
        }
        let _ = unlink(&self.socket);
        let (errno, doing) = told.split_once(' ').unwrap_or(("0", &told));
        Err(Failure::errno("SANDBOX_FAILED", doing, Errno::from_raw_os_error(errno.parse().unwrap_or(5))))
    }
}

struct Descriptors {
    null: OwnedFd,
    log: OwnedFd,
    listening: OwnedFd,
    status: OwnedFd,
    handed: Vec<OwnedFd>,
}

/// Everything the child needs, prepared before the fork.
struct Plan {
    argv: Vec<CString>,
    env: Vec<CString>,
    guest: String,
    uid: u32,
    gid: u32,
    keeper: Pid,
}

impl Plan {
    fn new(launch: &Launch) -> Result<Self, Failure> {
        let guest = if launch.uid == 0 { launch.guest.clone() } else { reach::guest_path()? };
        let fill = |word: &String| {
            let word = word.replace("{socket}", &LISTENING.to_string()).replace("{guest}", &guest);
            let numbered = launch.handed.iter().zip(HANDED..);
            numbered.fold(word, |word, (it, fd)| word.replace(&format!("{{fd:{}}}", it.name), &fd.to_string()))
        };
        let text = |word: String| CString::new(word).map_err(|_| Failure::new("INVALID_INPUT", "a NUL in an argument"));
        Ok(Self {
            argv: launch.argv.iter().map(fill).map(text).collect::<Result<_, _>>()?,
            env: launch.env.iter().cloned().map(text).collect::<Result<_, _>>()?,
            guest: launch.guest.clone(),
            uid: launch.uid,
            gid: launch.gid,
            keeper: getpid(),
        })
    }

    /// In the child.
    fn run(&self, descriptors: &Descriptors, groups: &Groups) -> ! {
        match self.settle(descriptors, groups).and_then(|()| arrange(descriptors).map_err(at("arranging descriptors")))
        {
            Err(failed) => tell(descriptors.status.as_fd(), failed),
            Ok(status) => match self.drop_privileges() {
                Err(failed) => tell(status.as_fd(), failed),
                Ok(()) => {
                    let errno = exec(&self.argv[0], &self.argv, &self.env);
                    tell(status.as_fd(), ("starting the sandbox's program", errno));
                }
            },
        }
        exit_now(70)
    }

    /// What needs the keeper's own rights and descriptors.
    fn settle(&self, descriptors: &Descriptors, groups: &Groups) -> Result<(), Failed> {
        self.die_with_keeper().map_err(at("staying with the keeper"))?;
        sign(&descriptors.log).map_err(at("writing the launch log"))?;
        setsid().map_err(at("starting a session"))?;
        groups.join().map_err(at("joining a cgroup"))?;
        if self.uid != 0 {
            reach::make_reachable(Path::new(&self.guest)).map_err(at("making the guest binary reachable"))?;
        }
        forbid_cores().map_err(at("forbidding core dumps"))?;
        umask(Mode::from_raw_mode(0o022));
        chdir("/").map_err(at("changing to /"))?;
        reset_signals();
        Ok(())
    }

    /// Until the program starts: nobody has heard of this process yet.
    fn die_with_keeper(&self) -> Result<(), Errno> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(self.keeper) { Ok(()) } else { Err(Errno::SRCH) }
    }

    fn drop_privileges(&self) -> Result<(), Failed> {
        set_parent_process_death_signal(None).map_err(at("leaving the keeper"))?;
        if self.uid == 0 {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&[]).map_err(at("clearing groups"))?;
        set_thread_res_gid(gid, gid, gid).map_err(at("changing the group"))?;
        set_thread_res_uid(uid, uid, uid).map_err(at("changing the user"))
    }
}

/// What was being done, and what came of it.
type Failed = (&'static str, Errno);

fn at(doing: &'static str) -> impl Fn(Errno) -> Failed {
    move |errno| (doing, errno)
}

fn tell(status: BorrowedFd, (doing, errno): Failed) {
    let _ = write(status, format!("{} {doing}", errno.raw_os_error()).as_bytes());
}

/// The log's first line names this process, so that whoever finds it without any record can find the process.
fn sign(log: &OwnedFd) -> Result<(), Errno> {
    let pid = getpid().as_raw_nonzero();
    let start_time = process::stat(pid.get()).ok_or(Errno::SRCH)?.start_time;
    write(log, format!("launched {pid} {start_time}\n").as_bytes()).map(drop)
}

/// Only 0–2, the listening socket, what is handed over and the status report remain; the latter, which is returned,
/// closes itself when the program starts.
fn arrange(descriptors: &Descriptors) -> Result<OwnedFd, Errno> {
    // First all out of the way, so that no number is overwritten while it is still needed.
    let aside = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, HANDED + 32);
    let null = aside(&descriptors.null)?;
    let log = aside(&descriptors.log)?;
    let listening = aside(&descriptors.listening)?;
    let status = aside(&descriptors.status)?;
    let handed = descriptors.handed.iter().map(aside).collect::<Result<Vec<_>, _>>()?;
    place_descriptor(&null, 0)?;
    place_descriptor(&log, 1)?;
    place_descriptor(&log, 2)?;
    place_descriptor(&listening, LISTENING)?;
    let placed = place_closing(&status, STATUS)?;
    for (fd, number) in handed.iter().zip(HANDED..) {
        place_descriptor(fd, number)?;
    }
    let first_free = HANDED as u32 + handed.len() as u32;
    drop((null, log, listening, status, handed));
    close_range(first_free, u32::MAX)?;
    Ok(placed)
}
