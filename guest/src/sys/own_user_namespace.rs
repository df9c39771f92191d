//! A user namespace in which this process is root over its own files.

use std::{
    fs, io,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::thread::UnshareFlags;

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Is this process root only in a namespace of its own?
pub fn entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Enters it: the process's own uid and gid become 0 there. Needs a single thread.
pub fn enter() -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // SAFETY: no other thread exists that could be surprised by the change of namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    ENTERED.store(true, Ordering::Relaxed);
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}
