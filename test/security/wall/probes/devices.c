/* /proc, /sys, device nodes and what PID 1 holds. */
#include "probe.h"
#include <dirent.h>
#include <sys/sysmacros.h>

static void try_pid1(void) {
  char target[256];
  tried("proc.pid1_root", readlink("/proc/1/root", target, sizeof target));
  tried("proc.pid1_cwd", readlink("/proc/1/cwd", target, sizeof target));
  tried("proc.pid1_exe", readlink("/proc/1/exe", target, sizeof target));
  opened("proc.pid1_environ", open("/proc/1/environ", O_RDONLY));
  opened("proc.pid1_maps", open("/proc/1/maps", O_RDONLY));
  opened("proc.pid1_mem_read", open("/proc/1/mem", O_RDONLY));
  opened("proc.pid1_mem_write", open("/proc/1/mem", O_RDWR));
  tried("proc.pid1_fd_link", readlink("/proc/1/fd/0", target, sizeof target));
  opened("proc.pid1_fd_open", open("/proc/1/fd/0", O_RDONLY | O_NONBLOCK));
  opened("proc.pid1_root_walk", open("/proc/1/root/etc/passwd", O_RDONLY));
  opened("proc.pid1_exe_write", open("/proc/1/exe", O_WRONLY));
  opened("proc.pid1_oom", open("/proc/1/oom_score_adj", O_WRONLY));
  opened("proc.pid1_uid_map", open("/proc/1/uid_map", O_WRONLY));
  /* It has the same uid as we do, so that the kernel itself would allow it. */
  struct rlimit limit = { 0, 0 };
  tried("proc.pid1_limits_read", prlimit(1, RLIMIT_NOFILE, NULL, &limit));
  limit.rlim_cur = 3;
  tried("proc.pid1_limits_set", prlimit(1, RLIMIT_NOFILE, &limit, NULL));
  tried("proc.pid1_limits_set_high_bits", syscall(SYS_prlimit64, (1UL << 32) | 1, RLIMIT_NPROC, &limit, NULL));
  tried("proc.pid1_kill", kill(1, SIGKILL));
  outcome("proc.pid1_alive", kill(1, 0) == 0 ? "alive" : "gone");
}

static void try_kernel_files(void) {
  static const struct { const char *name, *path; } files[] = {
    { "proc.core_pattern", "/proc/sys/kernel/core_pattern" },
    { "proc.modprobe", "/proc/sys/kernel/modprobe" },
    { "proc.hotplug", "/proc/sys/kernel/hotplug" },
    { "proc.max_user_namespaces", "/proc/sys/user/max_user_namespaces" },
    { "proc.binfmt_register", "/proc/sys/fs/binfmt_misc/register" },
    { "proc.ip_forward", "/proc/sys/net/ipv4/ip_forward" },
    { "proc.shmmax", "/proc/sys/kernel/shmmax" },
    { "proc.hostname", "/proc/sys/kernel/hostname" },
    { "proc.sysrq", "/proc/sysrq-trigger" },
    { "proc.irq", "/proc/irq/default_smp_affinity" },
    { "proc.oom_self", "/proc/self/oom_score_adj" },
    { "sys.uevent_helper", "/sys/kernel/uevent_helper" },
    { "sys.release_agent", "/sys/fs/cgroup/memory/release_agent" },
    { "sys.cgroup_procs", "/sys/fs/cgroup/cgroup.procs" },
    { "sys.power_state", "/sys/power/state" },
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) opened(files[i].name, open(files[i].path, O_WRONLY));
  opened("proc.kcore", open("/proc/kcore", O_RDONLY));
  opened("proc.kmsg", open("/proc/kmsg", O_RDONLY | O_NONBLOCK));
}

static void try_devices(void) {
  static const char *absent[] = { "mem",  "port",    "kmsg", "kvm",  "fuse",  "loop0",  "loop-control", "sda", "vda",
                                  "nvme0", "net/tun", "ppp",  "tty0", "uinput", "vhost-net", "vsock",     "hpet", "btrfs-control",
                                  "mapper/control", "dri/card0", "autofs", "console" };
  char name[64], path[64];
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    snprintf(path, sizeof path, "/dev/%s", absent[i]);
    snprintf(name, sizeof name, "dev.%s", absent[i]);
    opened(name, open(path, O_RDONLY | O_NONBLOCK));
  }
  tried("dev.mknod_mem", mknod("mem", S_IFCHR | 0600, makedev(1, 1)));
  tried("dev.mknod_block", mknod("disk", S_IFBLK | 0600, makedev(254, 0)));
  tried("dev.mknod_null", mknod("/tmp/null", S_IFCHR | 0666, makedev(1, 3)));
  tried("dev.mknod_whiteout", mknod("whiteout", S_IFCHR, 0));
  tried("dev.mkfifo_works", mkfifo("/tmp/fifo", 0600));
}

static void try_own_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int beyond = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    int number = atoi(entry->d_name);
    beyond += entry->d_name[0] != '.' && number > 2 && number != dirfd(folder);
  }
  if (folder) closedir(folder);
  outcome("descriptors.beyond_standard", beyond ? "some" : "none");
  opened("proc.own_exe_write", open("/proc/self/exe", O_WRONLY));
}

/* The guest's own program, if the test says where it is. */
static void try_guest_program(void) {
  const char *guest = getenv("GUEST");
  if (!guest) return;
  opened("guest.write", open(guest, O_WRONLY));
  tried("guest.unlink", unlink(guest));
  tried("guest.rename", rename(guest, "/tmp/guest"));
  tried("guest.chmod", chmod(guest, 0777));
}

int main(void) {
  try_own_descriptors();
  try_pid1();
  try_kernel_files();
  try_devices();
  try_guest_program();
  return 0;
}
