//! The command's side of its start: everything between clone and exec.
//!
//! It is started as posix_spawn does it: a child that borrows its parent's memory, on a stack of its
//! own, until it has called exec. That spares copying page tables and tells a failed exec through a
//! plain variable. Nothing here allocates or takes a lock.

use std::{
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    mem, ptr,
    sync::atomic::AtomicI32,
};

use rustix::process::{Resource, setrlimit};

use super::{plan::Job, report::Step};

const STACK_BYTES: usize = 64 * 1024;

/// The last thing before exec; must not allocate.
pub type Confine = fn() -> Result<(), i32>;

/// Why a command was not executed: the step and its errno.
pub type Failed = (Step, c_int);

struct Attempt<'a> {
    job: &'a Job<'a>,
    confine: Confine,
    failed: UnsafeCell<Option<Failed>>,
}

/// The child's stack. A static, because a monitor must not allocate; every monitor has its own copy
/// and uses it once.
#[repr(align(16))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);
// SAFETY: only the one child of a single-threaded monitor ever touches it.
unsafe impl Sync for Stack {}
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// Starts the command with the caller's standard descriptors and gives its pid once it has called
/// exec. `slot` gets the pid before the command runs. To be called once, by a process with one thread
/// and all signals blocked.
pub fn start(job: &Job<'_>, confine: Confine, slot: &AtomicI32) -> Result<i32, Failed> {
    let attempt = Attempt { job, confine, failed: UnsafeCell::new(None) };
    // SAFETY: CLONE_VFORK suspends this process until the child has called exec or exited, so
    // `attempt` and the stack outlive its use of them, and nobody else writes to either. The kernel
    // writes the child's pid to `slot`, an aligned integer.
    let pid = unsafe {
        let top = STACK.0.get().cast::<u8>().add(STACK_BYTES).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
        libc::clone(become_command, top, flags, ptr::from_ref(&attempt).cast_mut().cast(), slot.as_ptr())
    };
    if pid < 0 {
        return Err((Step::Monitor, errno()));
    }
    // SAFETY: the child is done with this memory.
    match unsafe { ptr::read_volatile(attempt.failed.get()) } {
        Some(failed) => Err(failed),
        None => Ok(pid),
    }
}

extern "C" fn become_command(attempt: *mut c_void) -> c_int {
    // SAFETY: `start` passes a pointer to its `Attempt`, which lives until this child is gone.
    let attempt = unsafe { &*attempt.cast_const().cast::<Attempt<'_>>() };
    let failed = prepare_and_execute(attempt.job, attempt.confine);
    // SAFETY: the parent is suspended, so this is the only access.
    unsafe {
        ptr::write_volatile(attempt.failed.get(), Some(failed));
        libc::_exit(127)
    }
}

/// Returns only when something failed.
fn prepare_and_execute(job: &Job<'_>, confine: Confine) -> Failed {
    // SAFETY: system calls with pointers into `job`, which outlives the call, and arrays that end with
    // a null pointer. Changes what the kernel keeps per process: session, mask, limits, directory; none
    // of that is shared with the monitor.
    unsafe {
        libc::setsid();
        if job.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
            return (Step::Terminal, errno());
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        if let Err(errno) = setrlimit(Resource::Nofile, job.open_files) {
            return (Step::Limits, errno.raw_os_error());
        }
        if libc::chdir(job.directory.as_ptr()) != 0 {
            return (Step::Directory, errno());
        }
        if let Err(errno) = confine() {
            return (Step::Confine, errno);
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
