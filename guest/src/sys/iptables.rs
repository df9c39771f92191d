//! Writing a table of iptables.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io;

const IPT_SO_SET_REPLACE: i32 = 64;

/// `table` is a `struct ipt_replace` with its entries. The socket has to be a raw one of IPv4.
pub fn replace_table(socket: impl AsFd, table: &[u8]) -> io::Result<()> {
    let (bytes, length) = (table.as_ptr().cast(), table.len() as libc::socklen_t);
    // SAFETY: pointer and length are those of one slice, which the kernel only reads.
    let result =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), libc::IPPROTO_IP, IPT_SO_SET_REPLACE, bytes, length) };
    super::check(result.into()).map(drop)
}
