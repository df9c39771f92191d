//! The command's side of its start: everything between clone and exec.
//!
//! The process of a command borrows its monitor's memory, on a stack of its own, until it has called exec: that spares
//! copying page tables, and a failed exec is told through a plain variable. It is there before its command where it can be: what is
//! the same for all commands is done, and it waits for the plan. Nothing here allocates or takes a lock.

use std::{
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    mem, ptr,
    sync::atomic::AtomicI32,
};

use rustix::process::{Resource, setrlimit};

use super::{plan::Job, plan_room, report::Step};

const STACK_BYTES: usize = 64 * 1024;

/// What puts a command behind its own part of the wall; must not allocate.
pub type Confine = fn() -> Result<(), i32>;

/// Why a command was not executed: the step and its errno.
pub type Failed = (Step, c_int);

/// A process that becomes, or has become, a command.
pub struct Start<'a> {
    /// None: it comes through the socket.
    pub job: Option<&'a Job<'a>>,
    pub socket: c_int,
    pub confine: Confine,
}

struct Attempt<'a> {
    start: Start<'a>,
    told: UnsafeCell<Told>,
}

/// What the process leaves in the memory that it borrows.
#[derive(Clone, Copy)]
enum Told {
    /// It has not come to know what to execute.
    Nothing,
    Executing,
    Failed(Failed),
}

/// The process's stack. A static, because a monitor must not allocate; every monitor has its own copy
/// and uses it once.
#[repr(align(16))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);
// SAFETY: only the one child of a single-threaded monitor ever touches it.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// Makes the command's process, which takes over the caller's standard descriptors, and gives its pid once it has called exec; `None` when it is
/// gone without having been told what to execute. `slot` gets the pid before the process runs. To be called once, by a process with one
/// thread and all signals blocked.
pub fn start(start: Start<'_>, slot: &AtomicI32) -> Result<Option<i32>, Failed> {
    let attempt = Attempt { start, told: UnsafeCell::new(Told::Nothing) };
    let mut ends: [c_int; 2] = [0; 2];
    // SAFETY: the child has ended or has called exec when the last writing end of the pipe is closed, which is waited for: so
    // `attempt` and the stack outlive its use of them, and nobody else writes to either. The kernel writes the child's pid to `slot`, an
    // aligned integer. Descriptors that are closed are this process's own.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err((Step::Monitor, errno()));
        }
        let top = STACK.0.get().cast::<u8>().add(STACK_BYTES).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
        let pid = libc::clone(become_command, top, flags, ptr::from_ref(&attempt).cast_mut().cast(), slot.as_ptr());
        if pid < 0 {
            return Err((Step::Monitor, errno()));
        }
        libc::close(ends[1]);
        // The command has its own. Closing these lets readers see the end of its output.
        for fd in 0..3 {
            libc::close(fd);
        }
        let mut nothing = 0u8;
        while libc::read(ends[0], ptr::from_mut(&mut nothing).cast(), 1) != 0 {}
        match ptr::read_volatile(attempt.told.get()) {
            Told::Nothing => Ok(None),
            Told::Executing => Ok(Some(pid)),
            Told::Failed(failed) => Err(failed),
        }
    }
}

extern "C" fn become_command(attempt: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to its `Attempt`, which lives until this child is gone. The parent reads what is told only then.
    unsafe {
        let attempt = &*attempt.cast_const().cast::<Attempt<'_>>();
        let tell = |told: Told| ptr::write_volatile(attempt.told.get(), told);
        let Start { job, socket, confine } = attempt.start;
        let failed = match begin(confine) {
            Err(failed) => failed,
            Ok(()) => {
                let received;
                let job = match job {
                    Some(job) => job,
                    None => match plan_room::receive(socket) {
                        Some(job) => {
                            received = job;
                            &received
                        }
                        None => libc::_exit(127),
                    },
                };
                tell(Told::Executing);
                execute(job)
            }
        };
        tell(Told::Failed(failed));
        libc::_exit(127)
    }
}

/// What is the same for all commands. Changes what the kernel keeps per process: none of it is shared with the monitor.
fn begin(confine: Confine) -> Result<(), Failed> {
    // SAFETY: system calls; `none` lives through its own.
    unsafe {
        libc::setsid();
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
    confine().map_err(|errno| (Step::Confine, errno))
}

/// Returns only when something failed.
fn execute(job: &Job<'_>) -> Failed {
    // SAFETY: system calls with pointers into `job`, which outlives the call, and arrays that end with
    // a null pointer.
    unsafe {
        if job.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
            return (Step::Terminal, errno());
        }
        // Descriptors may have come with the plan: not before.
        if let Err(errno) = setrlimit(Resource::Nofile, job.open_files) {
            return (Step::Limits, errno.raw_os_error());
        }
        if libc::chdir(job.directory.as_ptr()) != 0 {
            return (Step::Directory, errno());
        }
        let mut worst = libc::ENOENT;
        for program in job.programs {
            // An exec that finds nothing costs ten times what looking does.
            if libc::access(*program, libc::F_OK) == 0 {
                libc::execve(*program, job.arguments.as_ptr(), job.environment.as_ptr());
            }
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

pub fn errno() -> c_int {
    // SAFETY: the location is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
