//! Where a process that waits for its command takes the plan: memory that is there, and touched only where it is used.

use std::{
    cell::UnsafeCell,
    ffi::{c_char, c_int},
    mem, ptr,
};

use super::{
    command::errno,
    plan::{HEADER_BYTES, Job},
};

/// The largest plan that can be taken.
pub const ROOM_BYTES: usize = 64 * 1024;
pub const ROOM_POINTERS: usize = 2048;

struct Room(UnsafeCell<([u8; ROOM_BYTES], [*const c_char; ROOM_POINTERS])>);
// SAFETY: only the process that becomes a command ever touches it, once, and each monitor has its own copy.
unsafe impl Sync for Room {}
static ROOM: Room = Room(UnsafeCell::new(([0; ROOM_BYTES], [ptr::null(); ROOM_POINTERS])));

/// A plan of nothing: no program, no argument, no variable, and a directory without a name.
const NOTHING: [u8; HEADER_BYTES + 1] = {
    let mut bytes = [0; HEADER_BYTES + 1];
    bytes[0] = bytes.len() as u8;
    bytes
};

/// Waits for a plan, and takes the standard descriptors if any come with it; `None` when nobody sends one. To be called once.
pub fn receive(socket: c_int) -> Option<Job<'static>> {
    // SAFETY: the only use of it in this memory.
    let (bytes, pointers) = unsafe { &mut *ROOM.0.get() };
    // Has the memory at hand that the plan will need.
    bytes[..NOTHING.len()].copy_from_slice(&NOTHING);
    std::hint::black_box(Job::read(&bytes[..NOTHING.len()], pointers).is_some());
    let length = fill(socket, bytes)?;
    Job::read(&bytes[..length], pointers)
}

/// Gives the plan's length.
fn fill(socket: c_int, bytes: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    loop {
        let (count, descriptors) = receive_some(socket, &mut bytes[filled..])?;
        filled += count;
        if let Some(stdio) = descriptors {
            // SAFETY: descriptors that have just come, above those in use; system calls only.
            unsafe {
                for (target, fd) in stdio.into_iter().enumerate() {
                    libc::dup2(fd, target as c_int);
                    libc::close(fd);
                }
            }
        }
        match Job::length(&bytes[..filled]) {
            Some(length) if length <= filled => return Some(length),
            Some(length) if length > bytes.len() => return None,
            _ => {}
        }
    }
}

fn receive_some(socket: c_int, bytes: &mut [u8]) -> Option<(usize, Option<[c_int; 3]>)> {
    // SAFETY: the message header points to `part`, `bytes` and `control`, which live through the call
    // and whose lengths it states; control data is read only as far as the kernel says it wrote it.
    unsafe {
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut control = [0u64; 8];
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        let count = loop {
            match libc::recvmsg(socket, &mut message, libc::MSG_CMSG_CLOEXEC) {
                -1 if errno() == libc::EINTR => {}
                -1 | 0 => return None,
                count => break count as usize,
            }
        };
        let header = libc::CMSG_FIRSTHDR(&message);
        let size = libc::CMSG_LEN(mem::size_of::<[c_int; 3]>() as u32) as usize;
        let is_ours =
            !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS && (*header).cmsg_len as usize == size;
        let descriptors = is_ours.then(|| ptr::read_unaligned(libc::CMSG_DATA(header).cast::<[c_int; 3]>()));
        Some((count, descriptors))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_plan_of_nothing_is_one() {
        // In here: tests/wall has these files without their tests.
        use super::*;

        let mut pointers = [ptr::null(); 3];
        let job = Job::read(&NOTHING, &mut pointers).unwrap();
        assert!(job.directory.is_empty() && job.programs.is_empty());
    }
}
