//! Starting a command: PID 1 forks a *monitor*, and the monitor starts the command.
//!
//! The monitor is a subreaper, so that nothing can leave the command's tree by a double fork. It
//! stays while anything of the tree lives. Everything after the fork allocates nothing and takes no
//! lock: PID 1 may have other threads. The command itself is started as posix_spawn does it: a child
//! that borrows the monitor's memory, on a stack of its own, until it has called exec. That spares
//! copying page tables and tells a failed exec through a plain variable.

use std::{
    cell::UnsafeCell,
    ffi::{CStr, CString, c_char, c_int, c_void},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{
    reap,
    report::{Report, Step},
};

/// Where the monitor keeps the pipe to PID 1.
const REPORT_FD: c_int = 3;
const STACK_BYTES: usize = 64 * 1024;

/// A command, ready to be started without another allocation.
pub struct Plan {
    /// What to try to execute, in this order.
    programs: Vec<CString>,
    directory: CString,
    /// What `arguments` and `environment` point into.
    _strings: Vec<CString>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// On open files; PID 1's own is higher.
    pub open_files: Rlimit,
    /// Standard input is the terminal that the command gets as its controlling one.
    pub terminal: bool,
    /// The last thing before exec; must not allocate.
    pub confine: fn() -> Result<(), i32>,
}

impl Plan {
    pub fn new(
        programs: Vec<CString>,
        arguments: Vec<CString>,
        environment: Vec<CString>,
        directory: CString,
        open_files: Rlimit,
        confine: fn() -> Result<(), i32>,
    ) -> Self {
        let pointers =
            |strings: &[CString]| strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>();
        let (argv, envp) = (pointers(&arguments), pointers(&environment));
        let strings = arguments.into_iter().chain(environment).collect();
        Self {
            programs,
            directory,
            _strings: strings,
            arguments: argv,
            environment: envp,
            open_files,
            terminal: false,
            confine,
        }
    }

    pub fn programs(&self) -> impl Iterator<Item = &CStr> {
        self.programs.iter().map(CString::as_c_str)
    }
}

/// Memory that monitors share with PID 1: the kernel notes there which process is the command, so that
/// PID 1 knows even when the command kills its monitor before that can say a word.
pub struct Board {
    slots: NonNull<AtomicI32>,
}

impl Board {
    const SLOTS: usize = 4096;

    pub fn new() -> io::Result<Self> {
        let length = Self::SLOTS * mem::size_of::<AtomicI32>();
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice; it is never unmapped.
        let memory = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        match NonNull::new(memory.cast()) {
            Some(slots) if memory != libc::MAP_FAILED => Ok(Self { slots }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Slots are used in turn; there are more than there can be commands at their start.
    pub fn slot(&self, number: u32) -> &AtomicI32 {
        // SAFETY: within the mapping, which is zeroed, aligned to a page and lives for ever.
        unsafe { self.slots.add(number as usize % Self::SLOTS).as_ref() }
    }
}

/// Forks a monitor that starts `plan` with these three descriptors. Its reports go into the pipe
/// `report`; `slot` gets the command's pid. No descriptor is one of 0 to 2. Gives the monitor's pid.
pub fn start(plan: &Plan, stdio: [BorrowedFd<'_>; 3], report: BorrowedFd<'_>, slot: &AtomicI32) -> io::Result<i32> {
    slot.store(0, Ordering::Relaxed);
    let stdio = stdio.map(|fd| fd.as_raw_fd());
    // SAFETY: the child only runs `watch`, which is async-signal-safe and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => watch(plan, stdio, report.as_raw_fd(), slot),
        pid => Ok(pid),
    }
}

/// What the borrowed-memory child tells the monitor.
struct Attempt<'a> {
    plan: &'a Plan,
    failed: UnsafeCell<Option<(Step, c_int)>>,
}

/// The child's stack. A static, because the monitor must not allocate; every monitor has its own
/// copy and uses it once.
#[repr(align(16))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);
// SAFETY: only the one child of a single-threaded monitor ever touches it.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// The monitor's whole life.
fn watch(plan: &Plan, stdio: [c_int; 3], report: c_int, slot: &AtomicI32) -> ! {
    // SAFETY: system calls on descriptors and masks only. Nothing of the parent's memory is freed.
    unsafe {
        // Only SIGKILL and SIGSTOP reach the monitor from now on.
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"caisson-monitor".as_ptr());
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0 {
            leave(report, Report::Refused { step: Step::Monitor, errno: errno() });
        }
        for (target, fd) in stdio.into_iter().enumerate() {
            // PID 1 keeps 0 to 2 open, so `fd` and `report` are above them and none overwrites another.
            if libc::dup2(fd, target as c_int) < 0 {
                leave(report, Report::Refused { step: Step::Monitor, errno: errno() });
            }
        }
        if report != REPORT_FD && libc::dup3(report, REPORT_FD, libc::O_CLOEXEC) < 0 {
            leave(report, Report::Refused { step: Step::Monitor, errno: errno() });
        }
    }
    close_from(REPORT_FD as u32 + 1);
    let attempt = Attempt { plan, failed: UnsafeCell::new(None) };
    // SAFETY: CLONE_VFORK suspends this process until the child has called exec or exited, so
    // `attempt` and the stack outlive its use of them, and nobody else writes to either. The kernel
    // writes the child's pid to `slot` before the child runs.
    let pid = unsafe {
        let top = STACK.0.get().cast::<u8>().add(STACK_BYTES).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
        libc::clone(become_command, top, flags, ptr::from_ref(&attempt).cast_mut().cast(), slot.as_ptr())
    };
    if pid < 0 {
        leave(REPORT_FD, Report::Refused { step: Step::Monitor, errno: errno() });
    }
    // SAFETY: the child is done with the monitor's memory. Closing lets readers see the end of output.
    unsafe {
        for fd in 0..3 {
            libc::close(fd);
        }
        if let Some((step, errno)) = ptr::read_volatile(attempt.failed.get()) {
            leave(REPORT_FD, Report::Refused { step, errno });
        }
    }
    tell(REPORT_FD, Report::Started { pid });
    loop {
        match reap::wait_any(0) {
            Some(child) if child.pid == pid => {
                let left = reap::has_children();
                tell(REPORT_FD, Report::Exited { raw_status: child.raw_status, used: child.used, left });
            }
            Some(_) => {}
            None if errno() == libc::EINTR => {}
            // SAFETY: ends the process without running anything else.
            None => unsafe { libc::_exit(0) },
        }
    }
}

/// The command's side: everything between clone and exec.
extern "C" fn become_command(attempt: *mut c_void) -> c_int {
    // SAFETY: `watch` passes a pointer to its `Attempt`, which lives until this child is gone.
    let attempt = unsafe { &*attempt.cast_const().cast::<Attempt<'_>>() };
    let failed = prepare_and_execute(attempt.plan);
    // SAFETY: the monitor is suspended, so this is the only access.
    unsafe {
        ptr::write_volatile(attempt.failed.get(), Some(failed));
        libc::_exit(127)
    }
}

/// Returns only when something failed.
fn prepare_and_execute(plan: &Plan) -> (Step, c_int) {
    // SAFETY: system calls with pointers into `plan`, which outlives the call. Changes what the
    // kernel keeps per process: session, mask, limits, directory; none of that is shared with the monitor.
    unsafe {
        libc::setsid();
        if plan.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
            return (Step::Terminal, errno());
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        libc::umask(0o022);
        if let Err(errno) = setrlimit(Resource::Nofile, plan.open_files) {
            return (Step::Limits, errno.raw_os_error());
        }
        if libc::chdir(plan.directory.as_ptr()) != 0 {
            return (Step::Directory, errno());
        }
        if let Err(errno) = (plan.confine)() {
            return (Step::Confine, errno);
        }
        let mut worst = libc::ENOENT;
        for program in &plan.programs {
            libc::execve(program.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                // As a shell does it: what may not be executed is passed over for what may.
                libc::EACCES => worst = libc::EACCES,
                other => return (Step::Execute, other),
            }
        }
        (Step::Execute, worst)
    }
}

/// Closes every descriptor from `first` on.
fn close_from(first: u32) {
    // SAFETY: closes descriptors of the monitor, which uses none of them; no memory is touched.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) == 0 {
            return;
        }
        let mut limit: libc::rlimit64 = mem::zeroed();
        libc::prlimit64(0, libc::RLIMIT_NOFILE, ptr::null(), &mut limit);
        for fd in first..limit.rlim_cur.min(65_536) as u32 {
            libc::close(fd as c_int);
        }
    }
}

fn tell(fd: c_int, report: Report) {
    let bytes = report.encode();
    // SAFETY: `bytes` lives through the call. A record is smaller than PIPE_BUF: written whole or not at all.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

fn leave(fd: c_int, report: Report) -> ! {
    tell(fd, report);
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(0) }
}

fn errno() -> c_int {
    // SAFETY: the location is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
