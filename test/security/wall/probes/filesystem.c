/* Leaving the writable places, reading what is denied, and leaving dangerous files behind.
 *
 * Runs in the workspace. What it finds there and what the variables name is laid out by the test
 * (fixture.ts): a denied file and a denied directory, links to them and out of the workspace, sockets that
 * the host listens on, and CANARY, a file of the host outside everything that is mounted. */
#include "probe.h"
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define DENIED "denied/secret.txt"

static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value ? value : "/nowhere";
}

static int write_to(const char *path) { return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); }

static int read_from(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

/* Opening may succeed where reading does not: only bytes count. */
static void read_bytes(const char *name, const char *path) {
  char byte;
  int descriptor = read_from(path);
  long got = descriptor < 0 ? -1 : read(descriptor, &byte, 1);
  int error = errno;
  if (descriptor >= 0) close(descriptor);
  errno = error;
  if (got == 0) outcome(name, "empty");
  else tried(name, got < 0 ? -1 : 0);
}

static void try_writing_outside(void) {
  char path[4096];
  opened("files.write_etc", write_to("/etc/passwd"));
  opened("files.create_in_root", write_to("/caisson-probe"));
  opened("files.create_in_etc", write_to("/etc/caisson-probe"));
  opened("files.create_in_usr", write_to("/usr/caisson-probe"));
  opened("files.write_program", write_to("/usr/bin/env"));
  opened("files.create_in_dev", write_to("/dev/caisson-probe"));
  opened("files.write_dotdot", write_to("../../../../../../../../../../etc/caisson-probe"));
  opened("files.write_through_link", write_to("link-to-etc/caisson-probe"));
  opened("files.write_proc_root", write_to("/proc/self/root/etc/caisson-probe"));
  opened("files.write_proc_cwd", write_to("/proc/self/cwd/../../../../../../../../etc/caisson-probe"));
  tried("files.rename_over_etc", rename("plain.txt", "/etc/hosts"));
  tried("files.unlink_etc", unlink("/etc/hosts"));
  tried("files.chmod_etc", chmod("/etc/passwd", 0666));
  tried("files.remove_root_dir", rename("/etc", "/etc2"));
  snprintf(path, sizeof path, "%s/caisson-probe", variable("READONLY"));
  opened("files.write_readonly_bind", write_to(path));
  tried("files.remount_readonly", syscall(SYS_mount, 0, "/", 0, 32 /* MS_REMOUNT */, 0));
  opened("files.workspace_works", write_to("written.txt"));
  opened("files.tmp_works", write_to("/tmp/written.txt"));
  opened("files.home_works", write_to((snprintf(path, sizeof path, "%s/written.txt", variable("HOME")), path)));
  opened("files.shm_works", write_to("/dev/shm/written.txt"));
  opened("files.null_works", open("/dev/null", O_RDWR));
  mkdir("a-directory", 0755);
  mkdir("b-directory", 0755);
  close(write_to("a-directory/file"));
  tried("files.rename_across_works", rename("a-directory/file", "b-directory/file"));
}

static void try_reading_denied(void) {
  char path[4096];
  read_bytes("files.read_allowed_works", "plain.txt");
  read_bytes("files.read_denied", DENIED);
  read_bytes("files.read_denied_file", "denied.txt");
  read_bytes("files.read_denied_link", "link-to-denied");
  read_bytes("files.read_denied_directory_link", "link-to-denied-directory/secret.txt");
  read_bytes("files.read_denied_dotdot", "a-directory/../" DENIED);
  tried("files.list_denied", read_from("denied"));
  char here[2048];
  if (getcwd(here, sizeof here)) {
    snprintf(path, sizeof path, "/proc/self/root%s/%s", here, DENIED);
    read_bytes("files.read_denied_proc_root", path);
    snprintf(path, sizeof path, "/proc/self/cwd/%s", DENIED);
    read_bytes("files.read_denied_proc_cwd", path);
  }
  tried("files.hardlink_denied", link("denied.txt", "hard"));
  read_bytes("files.read_hardlink_denied", "hard");
  tried("files.chmod_denied", chmod("denied.txt", 0644));
  tried("files.unlink_denied", unlink("denied.txt"));
  tried("files.rename_denied", rename("denied.txt", "renamed.txt"));
  tried("files.replace_denied", rename("plain.txt", "denied.txt"));
  /* An ancestor away and back: what is denied stays denied under both names. */
  if (rename("above", "moved") == 0) {
    read_bytes("files.read_denied_moved", "moved/inner/secret.txt");
    tried("files.rename_back", rename("moved", "above"));
  } else {
    outcome_errno("files.read_denied_moved", errno);
    outcome("files.rename_back", "not moved");
  }
  read_bytes("files.read_denied_above", "above/inner/secret.txt");
}

static void try_reaching_the_host(void) {
  char path[4096];
  const char *canary = variable("CANARY");
  read_bytes("files.read_canary", canary);
  read_bytes("files.read_canary_link", "link-to-canary");
  opened("files.write_canary_link", open("link-to-canary", O_WRONLY));
  snprintf(path, sizeof path, "/proc/1/root%s", canary);
  read_bytes("files.read_canary_pid1", path);
  read_bytes("files.read_shadow", "/etc/shadow");
  tried("files.list_root_home", read_from("/root"));
  tried("files.list_boot", read_from("/boot"));
  tried("files.hardlink_program", link("/usr/bin/env", "env"));
  tried("files.hardlink_readonly", (snprintf(path, sizeof path, "%s/file.txt", variable("READONLY")), link(path, "linked")));
}

static void connected(const char *name, const char *path, size_t skip) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  size_t length = strlen(path);
  memcpy(address.sun_path + skip, path, length < 100 ? length : 100);
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  tried(name, connect(descriptor, (struct sockaddr *) &address, (socklen_t) (sizeof(sa_family_t) + skip + length + !skip)));
  close(descriptor);
}

static void try_sockets(void) {
  char path[4096];
  connected("files.socket_in_workspace", "host.sock", 0);
  snprintf(path, sizeof path, "%s/host.sock", variable("READONLY"));
  connected("files.socket_in_readonly_bind", path, 0);
  connected("files.abstract_socket", variable("ABSTRACT"), 1);
  connected("files.docker_socket", "/var/run/docker.sock", 0);
  connected("files.dbus_socket", "/run/dbus/system_bus_socket", 0);
}

/* Files that would give somebody on the host more than they have. The test looks for them there. */
static void try_set_id(void) {
  struct { uint64_t flags, mode, resolve; } how = { O_WRONLY | O_CREAT, 04755, 0 };
  close(write_to("program"));
  int descriptor = open("program", O_RDWR);
  tried("setid.chmod", syscall(SYS_fchmodat, AT_FDCWD, "program", 04755));
  tried("setid.chmod_group", syscall(SYS_fchmodat, AT_FDCWD, "program", 02755));
  tried("setid.fchmod", fchmod(descriptor, 06755));
  tried("setid.fchmod_high_bits", syscall(SYS_fchmod, descriptor, 04755 | 1UL << 33));
  tried("setid.fchmodat2", syscall(452, AT_FDCWD, "program", 04755, 0));
  opened("setid.open", (int) syscall(SYS_openat, AT_FDCWD, "created", O_WRONLY | O_CREAT, 04755));
  opened("setid.tmpfile", (int) syscall(SYS_openat, AT_FDCWD, ".", O_WRONLY | O_TMPFILE, 04755));
  opened("setid.openat2", (int) syscall(437, AT_FDCWD, "created2", &how, sizeof how));
  tried("setid.mkdir", syscall(SYS_mkdirat, AT_FDCWD, "set-group", 02755));
  tried("setid.mknod", syscall(SYS_mknodat, AT_FDCWD, "made", S_IFREG | 04755, 0));
  tried("setid.chmod_directory", chmod("a-directory", 02775));
#ifdef __x86_64__
  tried("setid.legacy_chmod", syscall(SYS_chmod, "program", 04755));
  opened("setid.legacy_open", (int) syscall(SYS_open, "created3", O_WRONLY | O_CREAT, 04755));
  opened("setid.legacy_creat", (int) syscall(SYS_creat, "created4", 02755));
  tried("setid.legacy_mkdir", syscall(SYS_mkdir, "set-group2", 02755));
  tried("setid.legacy_mknod", syscall(SYS_mknod, "made2", S_IFREG | 02755, 0));
#endif
  tried("setid.sticky_works", chmod("a-directory", 01777));
  static const unsigned char capability[20] = { 1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff };
  tried("setid.file_capability", setxattr("program", "security.capability", capability, sizeof capability, 0));
  tried("setid.trusted_attribute", setxattr("program", "trusted.overlay.opaque", "y", 1, 0));
  tried("setid.chown_root", chown("program", 0, 0));
  close(descriptor);
  struct statvfs where;
  static const char *mounts[] = { "/", "/usr", "/tmp", "/dev/shm", "." };
  int without = 0;
  for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
    without += statvfs(mounts[i], &where) != 0 || !(where.f_flag & ST_NOSUID);
  outcome("setid.mounts", without ? "without nosuid" : "nosuid");
}

int main(void) {
  umask(0);
  try_writing_outside();
  try_reading_denied();
  try_reaching_the_host();
  try_sockets();
  try_set_id();
  return 0;
}
