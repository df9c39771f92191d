//! Calls that are known and refused: EPERM says that it is the wall, where ENOSYS would be taken as an
//! older kernel and make some programs look for another way.

use super::number::PIDFD_GETFD;

/// libc lacks it for some processors.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = 320;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: libc::c_long = 294;

/// Reading, stopping or steering other processes; allowed by the group `debug`.
pub const TRACING: &[i64] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp, PIDFD_GETFD];

/// What lives in a user namespace of one's own; allowed by the group `nested`.
pub const NESTING: &[i64] = &[libc::SYS_chroot, libc::SYS_setns, libc::SYS_sethostname, libc::SYS_setdomainname];

/// The shape of the file-system tree. Also with `nested`: Landlock refuses it as well.
pub const MOUNTING: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // Opens files by number, past every path.
    libc::SYS_open_by_handle_at,
];

/// Parts of the kernel with a long record of holes and no use for a developer's tools.
pub const EXPOSED: &[i64] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keyrings are not in any namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_lookup_dcookie,
];

/// The machine itself: kernel, clock, swap, log, quotas.
pub const MACHINE: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
pub const LEGACY: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(target_arch = "aarch64")]
pub const LEGACY: &[i64] = &[];
