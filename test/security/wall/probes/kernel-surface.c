/* System calls that a sandbox has no business with, each really made. */
#include "probe.h"
#include <linux/sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define HIGH (1UL << 40 | 1UL << 33)

/* Calls by number that must fail before they look at their arguments. Those are harmless if they do not. */
struct call {
  const char *name;
  long number;
  long arguments[5];
};

#define UNKNOWN_FD 9999

static const struct call calls[] = {
  { "kernel.process_vm_readv", SYS_process_vm_readv, { 1, 0, 0, 0, 0 } },
  { "kernel.process_vm_writev", SYS_process_vm_writev, { 1, 0, 0, 0, 0 } },
  { "kernel.kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 } },
  { "kernel.pidfd_getfd", 438, { UNKNOWN_FD, 0, 0 } },
  { "kernel.setns", SYS_setns, { UNKNOWN_FD, 0 } },
  { "kernel.umount", SYS_umount2, { (long) "/proc", 2 } },
  { "kernel.pivot_root", SYS_pivot_root, { (long) "/", (long) "/" } },
  { "kernel.fsopen", 430, { (long) "tmpfs", 0 } },
  { "kernel.fsconfig", 431, { UNKNOWN_FD, 6, 0, 0, 0 } },
  { "kernel.fsmount", 432, { UNKNOWN_FD, 0, 0 } },
  { "kernel.fspick", 433, { AT_FDCWD, (long) "/", 0 } },
  { "kernel.open_tree", 428, { AT_FDCWD, (long) "/", 1 } },
  { "kernel.move_mount", 429, { UNKNOWN_FD, (long) "", AT_FDCWD, (long) "/tmp", 4 } },
  { "kernel.mount_setattr", 442, { AT_FDCWD, (long) "/", 0, 0, 0 } },
  { "kernel.chroot", SYS_chroot, { (long) "/" } },
  { "kernel.open_by_handle_at", SYS_open_by_handle_at, { AT_FDCWD, 0, 0 } },
  { "kernel.keyctl", SYS_keyctl, { 0, -3, 1 } },
  { "kernel.add_key", SYS_add_key, { (long) "user", (long) "x", (long) "x", 1, -3 } },
  { "kernel.request_key", SYS_request_key, { (long) "user", (long) "x", 0, -3 } },
  { "kernel.io_uring_setup", 425, { 1, 0 } },
  { "kernel.io_uring_enter", 426, { UNKNOWN_FD, 0, 0, 0 } },
  { "kernel.io_uring_register", 427, { UNKNOWN_FD, 0, 0, 0 } },
  { "kernel.bpf", SYS_bpf, { 0, 0, 0 } },
  { "kernel.perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
  { "kernel.userfaultfd", SYS_userfaultfd, { 1 } },
  { "kernel.fanotify_init", SYS_fanotify_init, { 0x200, 0 } },
  { "kernel.init_module", SYS_init_module, { 0, 0, (long) "" } },
  { "kernel.finit_module", SYS_finit_module, { UNKNOWN_FD, (long) "", 0 } },
  { "kernel.delete_module", SYS_delete_module, { (long) "caisson_no_such", 0 } },
  { "kernel.kexec_load", SYS_kexec_load, { 0, 0, 0, 0 } },
  { "kernel.kexec_file_load", SYS_kexec_file_load, { UNKNOWN_FD, UNKNOWN_FD, 0, 0, 0 } },
  { "kernel.reboot", SYS_reboot, { 0, 0, 0 } },
  { "kernel.settimeofday", SYS_settimeofday, { 0, 0 } },
  { "kernel.clock_settime", SYS_clock_settime, { 0, 0 } },
  { "kernel.adjtimex", SYS_adjtimex, { 0 } },
  { "kernel.swapon", SYS_swapon, { (long) "/nowhere", 0 } },
  { "kernel.swapoff", SYS_swapoff, { (long) "/nowhere" } },
  { "kernel.syslog", SYS_syslog, { 10, 0, 0 } },
  { "kernel.acct", SYS_acct, { (long) "/nowhere" } },
  { "kernel.quotactl", SYS_quotactl, { 0x80000100, 0, 0, 0 } },
  { "kernel.sethostname", SYS_sethostname, { (long) "x", 1 } },
  { "kernel.setdomainname", SYS_setdomainname, { (long) "x", 1 } },
  { "kernel.move_pages", SYS_move_pages, { 1, 0, 0, 0, 0 } },
  { "kernel.openat2", 437, { AT_FDCWD, (long) "/", 0, 0 } },
  { "kernel.unknown_number", 700, { 0 } },
#ifdef __x86_64__
  { "kernel.iopl", SYS_iopl, { 3 } },
  { "kernel.ioperm", SYS_ioperm, { 0, 1, 1 } },
  { "kernel.modify_ldt", SYS_modify_ldt, { 0, 0, 0 } },
  { "kernel.uselib", SYS_uselib, { (long) "/nowhere" } },
#endif
};

struct family {
  const char *name;
  int family, kind, protocol;
};

static const struct family families[] = {
  { "sockets.packet", 17, SOCK_RAW, 0 },
  { "sockets.alg", 38, SOCK_SEQPACKET, 0 },
  { "sockets.vsock", 40, SOCK_STREAM, 0 },
  { "sockets.key", 15, SOCK_RAW, 2 },
  { "sockets.can", 29, SOCK_RAW, 1 },
  { "sockets.bluetooth", 31, SOCK_RAW, 1 },
  { "sockets.tipc", 30, SOCK_STREAM, 0 },
  { "sockets.xdp", 44, SOCK_RAW, 0 },
  { "sockets.raw4", AF_INET, SOCK_RAW, 1 },
  { "sockets.raw6", AF_INET6, SOCK_RAW, 58 },
  { "sockets.sctp", AF_INET, SOCK_STREAM, 132 },
  { "sockets.netlink_netfilter", 16, SOCK_RAW, 12 },
  { "sockets.netlink_generic", 16, SOCK_RAW, 16 },
  { "sockets.netlink_audit", 16, SOCK_RAW, 9 },
  { "sockets.netlink_uevent", 16, SOCK_RAW, 15 },
  { "sockets.netlink_diag", 16, SOCK_RAW, 4 },
  { "sockets.unix_works", AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 },
  { "sockets.tcp_works", AF_INET, SOCK_STREAM, 0 },
  { "sockets.udp6_works", AF_INET6, SOCK_DGRAM, 17 },
  { "sockets.netlink_route_works", 16, SOCK_RAW, 0 },
};

struct flag {
  const char *name;
  unsigned long flag;
};

static const struct flag namespaces[] = {
  { "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS },  { "net", CLONE_NEWNET },       { "pid", CLONE_NEWPID },
  { "ipc", CLONE_NEWIPC },   { "uts", CLONE_NEWUTS },   { "cgroup", CLONE_NEWCGROUP },
};

static long clone_flags(unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  int error = errno;
  if (pid > 0) waitpid((pid_t) pid, 0, 0);
  errno = error;
  return pid;
}

/* In a child: a namespace that could be left would change what follows. */
static void unshared(const char *name, unsigned long flags) {
  pid_t child = fork();
  if (child == 0) {
    tried(name, syscall(SYS_unshare, flags));
    _exit(0);
  }
  waitpid(child, 0, 0);
}

static void try_namespaces(void) {
  char name[64];
  for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
    snprintf(name, sizeof name, "kernel.clone_%s", namespaces[i].name);
    tried(name, clone_flags(namespaces[i].flag));
    snprintf(name, sizeof name, "kernel.unshare_%s", namespaces[i].name);
    unshared(name, namespaces[i].flag);
  }
  unshared("kernel.unshare_time", 0x80);
  tried("kernel.clone_user_high_bits", clone_flags(CLONE_NEWUSER | HIGH));
  struct clone_args arguments = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
  long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  tried("kernel.clone3_user", pid);
  tried("kernel.fork_works", clone_flags(0));
}

static void try_tracing(void) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  tried("kernel.ptrace_attach", ptrace(PTRACE_ATTACH, child, 0, 0));
  kill(child, SIGKILL);
  waitpid(child, 0, 0);
  child = fork();
  if (child == 0) {
    tried("kernel.ptrace_traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
    _exit(0);
  }
  waitpid(child, 0, 0);
  tried("kernel.ptrace_pid1", ptrace(PTRACE_SEIZE, 1, 0, 0));
}

static void try_terminal(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) {
    tried("terminal.works", -1);
    return;
  }
  outcome("terminal.works", "allowed");
  int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  char letter = 'x', console[] = { 6 };
  tried("terminal.tiocsti", ioctl(slave, TIOCSTI, &letter));
  tried("terminal.tiocsti_high_bits", syscall(SYS_ioctl, slave, TIOCSTI | HIGH, &letter));
  tried("terminal.tioclinux", ioctl(slave, TIOCLINUX, console));
  int discipline = 2;
  tried("terminal.tiocsetd", ioctl(slave, TIOCSETD, &discipline));
  close(slave);
  close(master);
}

#ifdef __x86_64__
/* The 32-bit entry of a 64-bit process. */
static long int80(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) {
    errno = (int) -result;
    return -1;
  }
  return result;
}

static void try_foreign_abis(void) {
  tried("abi.i386_getpid", int80(20, 0, 0, 0));
  tried("abi.i386_unshare_user", int80(310, CLONE_NEWUSER, 0, 0));
  tried("abi.i386_socketcall", int80(102, 1, 0, 0));
  tried("abi.i386_ptrace", int80(26, 0, 0, 0));
  tried("abi.x32_getpid", syscall(0x40000000 | SYS_getpid));
  tried("abi.x32_ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
  tried("abi.x32_unshare_user", syscall(0x40000000 | SYS_unshare, CLONE_NEWUSER));
}
#else
static void try_foreign_abis(void) {}
#endif

static void try_identity(void) {
  tried("identity.setuid_root", setuid(0));
  tried("identity.setresuid_host", syscall(SYS_setresuid, 65534, 65534, 65534));
  gid_t group = 0;
  tried("identity.setgroups", syscall(SYS_setgroups, 1, &group));
  tried("identity.securebits", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
  long left = 0;
  for (int capability = 0; capability < 64; capability++) left += prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
  outcome("identity.bounding_set", left ? "not empty" : "empty");
  outcome("identity.uid", getuid() && geteuid() && getgid() && getegid() ? "not root" : "root");
}

/* The lines of /proc/self/status that tell what is in force. */
static void show_status(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) {
    static const char *fields[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp" };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
      size_t length = strlen(fields[i]);
      if (strncmp(line, fields[i], length) || line[length] != ':') continue;
      char name[64], value[64];
      if (sscanf(line + length + 1, " %63s", value) != 1) continue;
      snprintf(name, sizeof name, "status.%s", fields[i]);
      outcome(name, value);
    }
  }
  if (status) fclose(status);
}

int main(void) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    const long *a = calls[i].arguments;
    tried(calls[i].name, syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4]));
  }
  tried("kernel.mount", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
  tried("kernel.personality_exec", syscall(SYS_personality, READ_IMPLIES_EXEC));
  tried("kernel.personality_high_bits", syscall(SYS_personality, READ_IMPLIES_EXEC | HIGH));
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    opened(families[i].name, socket(families[i].family, families[i].kind, families[i].protocol));
  opened("sockets.alg_high_bits", (int) syscall(SYS_socket, 38 | HIGH, SOCK_SEQPACKET | HIGH, 0));
  int pair[2];
  tried("sockets.pair_tipc", socketpair(30, SOCK_STREAM, 0, pair));
  try_namespaces();
  try_tracing();
  try_terminal();
  try_foreign_abis();
  try_identity();
  show_status();
  outcome("kernel.survived", "alive");
  return 0;
}
