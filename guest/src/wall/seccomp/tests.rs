use std::collections::HashSet;

use libc::{EAFNOSUPPORT, ENOSYS, EPERM, EPROTONOSUPPORT};

use super::{
    program::{
        Verdict::{self, Allow, Pretend, Refuse},
        emulator::{Call, run},
    },
    *,
};

fn verdict(groups: Groups, number: i64, arguments: &[u64]) -> u32 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    run(&assembled(rules(groups)), &Call { arch: number::ARCH, number: number as u32, arguments: all })
}

fn assert_verdict(number: i64, arguments: &[u64], expected: Verdict) {
    assert_eq!(verdict(Groups::default(), number, arguments), expected.code(), "call {number} {arguments:x?}");
}

#[test]
fn every_listed_call_has_one_verdict() {
    let lists = [
        allow::FILES,
        allow::MEMORY,
        allow::PROCESSES,
        allow::EVENTS,
        allow::SOCKETS,
        allow::LEGACY,
        refuse::TRACING,
        refuse::NESTING,
        refuse::MOUNTING,
        refuse::EXPOSED,
        refuse::MACHINE,
        refuse::LEGACY,
    ];
    let arguments: Vec<i64> = arguments::rules(Groups::default()).iter().map(|(number, _)| *number).collect();
    let mut seen = HashSet::new();
    for number in lists.into_iter().flatten().chain(&arguments) {
        assert!(seen.insert(number), "call {number} is listed twice");
    }
}

#[test]
fn lists_mean_what_they_say() {
    for &number in [allow::FILES, allow::MEMORY, allow::PROCESSES, allow::EVENTS, allow::SOCKETS, allow::LEGACY]
        .into_iter()
        .flatten()
    {
        assert_verdict(number, &[], Allow);
    }
    for &number in
        [refuse::TRACING, refuse::NESTING, refuse::MOUNTING, refuse::EXPOSED, refuse::MACHINE, refuse::LEGACY]
            .into_iter()
            .flatten()
    {
        assert_verdict(number, &[], Refuse(EPERM));
    }
}

#[test]
fn what_is_in_no_list_looks_like_an_older_kernel() {
    for number in [libc::SYS_clone3, 334 + 2, 462, 500, 1000, 0x3fff_ffff] {
        assert_verdict(number, &[], Refuse(ENOSYS));
    }
}

#[test]
fn foreign_abis_are_refused_without_killing() {
    let program = assembled(rules(Groups { debug: true, nested: true }));
    for arch in [0x4000_0003, 0x4000_0028, 0, u32::MAX] {
        let call = Call { arch, number: libc::SYS_read as u32, arguments: [0; 6] };
        assert_eq!(run(&program, &call), Refuse(ENOSYS).code());
    }
    #[cfg(target_arch = "x86_64")]
    for number in [0x4000_0000, 0x4000_0000 | 101, 0xffff_ffff] {
        let call = Call { arch: number::ARCH, number, arguments: [0; 6] };
        assert_eq!(run(&program, &call), Refuse(ENOSYS).code());
    }
}

#[test]
fn namespaces_are_refused_also_with_high_bits() {
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID] {
        for number in [libc::SYS_clone, libc::SYS_unshare] {
            assert_verdict(number, &[flag as u64], Refuse(EPERM));
            assert_verdict(number, &[flag as u64 | 0xffff_ffff << 32], Refuse(EPERM));
        }
    }
    assert_verdict(libc::SYS_unshare, &[0x80], Refuse(EPERM));
    assert_verdict(libc::SYS_clone, &[libc::SIGCHLD as u64 | 0x1_0000_0000], Allow);
    let nested = Groups { nested: true, ..Groups::default() };
    assert_eq!(verdict(nested, libc::SYS_unshare, &[libc::CLONE_NEWUSER as u64]), Allow.code());
    assert_eq!(verdict(nested, libc::SYS_mount, &[]), Refuse(EPERM).code());
    assert_eq!(verdict(nested, libc::SYS_ptrace, &[]), Refuse(EPERM).code());
    let debug = Groups { debug: true, ..Groups::default() };
    assert_eq!(verdict(debug, libc::SYS_ptrace, &[]), Allow.code());
    assert_eq!(verdict(debug, libc::SYS_setns, &[]), Refuse(EPERM).code());
}

#[test]
fn set_id_bits_are_refused_wherever_a_mode_is_given() {
    for bits in [0o4755, 0o2755, 0o6000, 0xdead_0000_0000 | 0o4000] {
        assert_verdict(libc::SYS_fchmod, &[3, bits], Refuse(EPERM));
        assert_verdict(libc::SYS_fchmodat, &[3, 0, bits], Refuse(EPERM));
        assert_verdict(number::FCHMODAT2, &[3, 0, bits, 0], Refuse(EPERM));
        assert_verdict(libc::SYS_mkdirat, &[3, 0, bits], Refuse(EPERM));
        assert_verdict(libc::SYS_mknodat, &[3, 0, bits], Refuse(EPERM));
        assert_verdict(libc::SYS_openat, &[3, 0, libc::O_CREAT as u64, bits], Refuse(EPERM));
        assert_verdict(libc::SYS_openat, &[3, 0, libc::O_TMPFILE as u64, bits], Refuse(EPERM));
        assert_verdict(libc::SYS_openat, &[3, 0, libc::O_DIRECTORY as u64, bits], Allow);
    }
    assert_verdict(libc::SYS_fchmod, &[3, 0o1777], Allow);
    #[cfg(target_arch = "x86_64")]
    for number in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mkdir, libc::SYS_mknod] {
        assert_verdict(number, &[0, 0o4755], Refuse(EPERM));
        assert_verdict(number, &[0, 0o755], Allow);
    }
}

#[test]
fn devices_are_never_made() {
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        assert_verdict(libc::SYS_mknodat, &[3, 0, u64::from(kind | 0o600)], Refuse(EPERM));
    }
    assert_verdict(libc::SYS_mknodat, &[3, 0, u64::from(libc::S_IFIFO | 0o600)], Allow);
}

#[test]
fn only_known_socket_families_exist() {
    let socket = |family: i32, kind: i32, protocol: i32, expected| {
        assert_verdict(libc::SYS_socket, &[family as u64, kind as u64, protocol as u64], expected);
        assert_verdict(libc::SYS_socket, &[family as u64 | 7 << 32, kind as u64 | 9 << 40, protocol as u64], expected);
    };
    for family in [libc::AF_PACKET, libc::AF_ALG, libc::AF_VSOCK, libc::AF_CAN, libc::AF_XDP, libc::AF_TIPC] {
        socket(family, libc::SOCK_DGRAM, 0, Refuse(EAFNOSUPPORT));
        assert_verdict(libc::SYS_socketpair, &[family as u64, 1], Refuse(EAFNOSUPPORT));
    }
    socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, Allow);
    socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0, Allow);
    socket(libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_UDP, Allow);
    socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP, Refuse(EPERM));
    socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP, Refuse(EPROTONOSUPPORT));
    socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, Allow);
    socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER, Refuse(EPROTONOSUPPORT));
}

#[test]
fn terminal_tricks_and_personalities_are_refused() {
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD] {
        assert_verdict(libc::SYS_ioctl, &[0, request], Refuse(EPERM));
        assert_verdict(libc::SYS_ioctl, &[0, request | 0x1_0000_0000], Refuse(EPERM));
    }
    assert_verdict(libc::SYS_ioctl, &[0, libc::TIOCGWINSZ], Allow);
    assert_verdict(libc::SYS_personality, &[0xffff_ffff], Allow);
    assert_verdict(libc::SYS_personality, &[0x0040_0000], Refuse(EPERM));
}

#[test]
fn the_filter_stays_short() {
    let length = assembled(rules(Groups::default())).len();
    assert!(length < 1024, "{length} instructions");
}

#[test]
fn commands_lose_openat2_only() {
    let call = |number: i64| Call { arch: number::ARCH, number: number as u32, arguments: [0; 6] };
    assert_eq!(run(&COMMAND, &call(libc::SYS_openat2)), Refuse(ENOSYS).code());
    assert_eq!(run(&COMMAND, &call(libc::SYS_openat)), Allow.code());
}

#[test]
fn limits_of_pid_1_are_out_of_reach() {
    for pid in [0, 2, 1 << 20] {
        assert_verdict(libc::SYS_prlimit64, &[pid], Allow);
    }
    assert_verdict(libc::SYS_prlimit64, &[1], Refuse(EPERM));
    assert_verdict(libc::SYS_prlimit64, &[1 << 32 | 1], Refuse(EPERM));
}

#[test]
fn the_limit_on_cores_cannot_be_set() {
    let core = libc::RLIMIT_CORE as u64;
    // A pointer may have any half of it empty.
    for pointer in [0x1000, 1 << 32, 0x7fff_0000_0000, u64::MAX] {
        assert_verdict(libc::SYS_prlimit64, &[0, core, pointer], Pretend);
        assert_verdict(libc::SYS_prlimit64, &[77, core | 5 << 32, pointer], Pretend);
        assert_verdict(libc::SYS_prlimit64, &[0, core, pointer, pointer], Refuse(EPERM));
        assert_verdict(libc::SYS_prlimit64, &[0, core, 0, pointer], Allow);
        assert_verdict(libc::SYS_prlimit64, &[0, libc::RLIMIT_NOFILE as u64, pointer, pointer], Allow);
    }
    assert_verdict(libc::SYS_setrlimit, &[core, 0x1000], Pretend);
    assert_verdict(libc::SYS_setrlimit, &[core | 1 << 32, 0x1000], Pretend);
    assert_verdict(libc::SYS_setrlimit, &[libc::RLIMIT_NOFILE as u64, 0x1000], Allow);
}
