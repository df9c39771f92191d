//! Memory that monitors share with PID 1.

use std::{
    io, mem,
    ptr::{self, NonNull},
    sync::atomic::AtomicI32,
};

/// The kernel notes here which process is the command, so that PID 1 knows even when the command kills
/// its monitor before that can say a word.
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

    /// Slots are used in turn; there are as many as there can be commands.
    pub fn slot(&self, number: u32) -> &AtomicI32 {
        // SAFETY: within the mapping, which is zeroed, aligned to a page and lives for ever.
        unsafe { self.slots.add(number as usize % Self::SLOTS).as_ref() }
    }
}
