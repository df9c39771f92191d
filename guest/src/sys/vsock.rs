//! A listening socket between a virtual machine and its host.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::check;

/// Listens for the host, and for nobody else: the socket takes connections to any address of the machine, of which
/// there is one.
pub fn listening(port: u32) -> rustix::io::Result<OwnedFd> {
    // SAFETY: socket has no preconditions.
    let made = check(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) }.into())?;
    // SAFETY: it has just been made and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(made as RawFd) };
    // SAFETY: an address of zeros is a valid value, completed below.
    let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
    address.svm_port = port;
    address.svm_cid = libc::VMADDR_CID_ANY;
    let length = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
    // SAFETY: the address is of the family's type and outlives the call, and its length is passed.
    check(unsafe { libc::bind(made as RawFd, (&raw const address).cast(), length) }.into())?;
    // SAFETY: listen has no preconditions.
    check(unsafe { libc::listen(made as RawFd, 16) }.into())?;
    Ok(socket)
}
