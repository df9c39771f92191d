//! Calls whose arguments decide.

use libc::{EAFNOSUPPORT, EINVAL, ENOSYS, EPERM, EPROTONOSUPPORT};

use super::{
    number::FCHMODAT2,
    program::{ALLOW, PRETEND, Test::AnyBit, Test::OneOf, Tree, refuse, when, when_given},
};
use crate::wall::plan::Groups;

const ALL: u32 = u32::MAX;

/// Every CLONE_NEW… flag. CLONE_NEWTIME shares its bit with the exit signal of `clone`, which ignores it.
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const NEW_TIME: u32 = 0x80;

/// A set-uid file in a project would be one on the host.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
const CREATES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Pushes input into a terminal; moves the console's selection; loads line disciplines.
const TERMINAL_TRICKS: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32];

/// PER_LINUX, the question what it is, and without address randomisation, as debuggers and sanitizers start programs.
const PERSONALITIES: &[u32] = &[0, ALL, 0x0004_0000];

const CORE_SIZE: &[u32] = &[rustix::process::Resource::Core as u32];

/// Calls that send a signal, whose first argument says to whom.
pub const SIGNALS: [i64; 5] =
    [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];

pub fn not_to_init() -> Tree {
    when(0, OneOf(ALL, &[1]), refuse(EPERM), ALLOW)
}

pub fn rules(groups: Groups) -> Vec<(i64, Tree)> {
    let mut rules = vec![
        // Its flags are behind a pointer; libraries fall back to clone.
        (libc::SYS_clone3, refuse(ENOSYS)),
        (libc::SYS_clone, namespaces(groups, NEW_NAMESPACES)),
        (libc::SYS_unshare, namespaces(groups, NEW_NAMESPACES | NEW_TIME)),
        (libc::SYS_socket, socket()),
        (libc::SYS_socketpair, when(0, OneOf(ALL, &[libc::AF_UNIX as u32]), ALLOW, refuse(EAFNOSUPPORT))),
        (libc::SYS_ioctl, when(1, OneOf(ALL, TERMINAL_TRICKS), refuse(EPERM), ALLOW)),
        (libc::SYS_personality, when(0, OneOf(ALL, PERSONALITIES), ALLOW, refuse(EPERM))),
        // Commands and PID 1 are of one user, and the kernel kills whoever is beyond his processor time.
        (libc::SYS_prlimit64, when(0, OneOf(ALL, &[1]), refuse(EPERM), limits())),
        (libc::SYS_setrlimit, when(0, OneOf(ALL, CORE_SIZE), PRETEND, ALLOW)),
        (libc::SYS_fchmod, mode(1)),
        (libc::SYS_fchmodat, mode(2)),
        (FCHMODAT2, mode(2)),
        (libc::SYS_mkdirat, mode(2)),
        (libc::SYS_openat, creation(2, 3)),
        (libc::SYS_mknodat, node(2)),
    ];
    rules.extend(legacy());
    rules
}

#[cfg(target_arch = "x86_64")]
fn legacy() -> Vec<(i64, Tree)> {
    vec![
        (libc::SYS_chmod, mode(1)),
        (libc::SYS_mkdir, mode(1)),
        (libc::SYS_creat, mode(1)),
        (libc::SYS_open, creation(1, 2)),
        (libc::SYS_mknod, node(1)),
    ]
}
#[cfg(target_arch = "aarch64")]
fn legacy() -> Vec<(i64, Tree)> {
    Vec::new()
}

fn namespaces(groups: Groups, flags: u32) -> Tree {
    match groups.nested {
        true => ALLOW,
        false => when(0, AnyBit(flags), refuse(EPERM), ALLOW),
    }
}

/// The limit on cores stays what the wall made it (`cores.rs`): any other would let the host run a program on a crash. Programs that
/// forbid themselves cores, as gpg and ssh-agent do, take a refusal for a reason to end; to them it is done, as it is. Who wants to
/// know the old limit as well would be told none, and is refused.
fn limits() -> Tree {
    let new = when_given(2, when_given(3, refuse(EPERM), PRETEND), ALLOW);
    when(1, OneOf(ALL, CORE_SIZE), new, ALLOW)
}

fn mode(argument: u32) -> Tree {
    when(argument, AnyBit(SET_ID), refuse(EPERM), ALLOW)
}

/// The mode counts only when the flags create something; otherwise it may be anything.
fn creation(flags: u32, mode_argument: u32) -> Tree {
    when(flags, AnyBit(CREATES), mode(mode_argument), ALLOW)
}

/// Pipes, sockets and plain files, without set-id bits; never a device, not even an overlay's whiteout.
fn node(argument: u32) -> Tree {
    let kinds = &[0, libc::S_IFREG, libc::S_IFIFO, libc::S_IFSOCK];
    when(argument, OneOf(libc::S_IFMT, kinds), mode(argument), refuse(EPERM))
}

/// Unix sockets, TCP, UDP and ICMP echo, and route netlink, which resolvers and `ip addr` ask.
/// The other protocols load modules; VSOCK would reach a hypervisor past the network namespace.
fn socket() -> Tree {
    const STREAM_OR_DATAGRAM: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32];
    const PROTOCOLS: &[u32] = &[
        0,
        libc::IPPROTO_TCP as u32,
        libc::IPPROTO_UDP as u32,
        libc::IPPROTO_ICMP as u32,
        libc::IPPROTO_ICMPV6 as u32,
    ];
    let unsupported = || refuse(EPROTONOSUPPORT);
    let internet = when(
        1,
        // The kind is in the low four bits; the rest are flags.
        OneOf(0xf, STREAM_OR_DATAGRAM),
        when(2, OneOf(ALL, PROTOCOLS), ALLOW, unsupported()),
        refuse(EPERM),
    );
    let netlink = when(2, OneOf(ALL, &[libc::NETLINK_ROUTE as u32]), ALLOW, unsupported());
    let unix = when(1, OneOf(0xf, &[1, 2, 5]), ALLOW, refuse(EINVAL));
    when(
        0,
        OneOf(ALL, &[libc::AF_UNIX as u32]),
        unix,
        when(
            0,
            OneOf(ALL, &[libc::AF_INET as u32, libc::AF_INET6 as u32]),
            internet,
            when(0, OneOf(ALL, &[libc::AF_NETLINK as u32]), netlink, refuse(EAFNOSUPPORT)),
        ),
    )
}
