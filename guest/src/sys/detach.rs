//! Starting a process that has nothing to do with us any more.

use std::{io, os::unix::process::CommandExt, process::Command};

/// Makes the command start in a session of its own, with nothing open but its standard streams and
/// with a file mode mask that does not depend on the caller.
pub fn detach(command: &mut Command) -> &mut Command {
    let work = || {
        // SAFETY: three system calls that take no pointers; they are async-signal-safe, as needed between
        // fork and exec.
        unsafe {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::umask(0o022);
            // Marks instead of closing: the standard library still needs its pipe until exec.
            if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes async-signal-safe calls only and allocates nothing.
    unsafe { command.pre_exec(work) }
}
