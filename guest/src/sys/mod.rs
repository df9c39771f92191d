//! The only modules with `unsafe`: thin, safe wrappers around what rustix does not offer.

pub mod board;
pub mod command;
pub mod descriptors;
pub mod detach;
pub mod entropy;
pub mod iptables;
pub mod landlock;
pub mod launching;
pub mod memory;
pub mod monitor;
pub mod mount;
pub mod mount_attr;
pub mod namespace_holder;
pub mod own_user_namespace;
pub mod plan;
pub mod plan_room;
pub mod reap;
pub mod report;
pub mod seccomp;
pub mod signalfd;
pub mod signals;
#[cfg(test)]
pub mod testing;
pub mod unshare;
pub mod vsock;
pub mod worker;

/// The result of a raw system call that reports failure as -1 and errno.
fn check(result: libc::c_long) -> rustix::io::Result<libc::c_long> {
    if result < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(rustix::io::Errno::from_raw_os_error(errno));
    }
    Ok(result)
}
