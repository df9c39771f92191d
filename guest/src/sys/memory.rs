//! Keeping PID 1 small.

/// One heap for all threads, and large buffers straight from the kernel, so that they go back to it.
pub fn keep_heap_small() {
    #[cfg(target_env = "gnu")]
    // SAFETY: changes numbers of the allocator, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
    }
}
