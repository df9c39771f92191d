/* Using things up. Each case frees what it took, so that the next one can run. */
#include "probe.h"

static void try_limits(void) {
  struct rlimit limit;
  static const struct { const char *name; int resource; } limits[] = {
    { "limits.raise_files", RLIMIT_NOFILE },
    { "limits.raise_processes", RLIMIT_NPROC },
  };
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    getrlimit((__rlimit_resource_t) limits[i].resource, &limit);
    limit.rlim_max = RLIM_INFINITY;
    tried(limits[i].name, setrlimit((__rlimit_resource_t) limits[i].resource, &limit));
  }
}

/* At any limit but 1 the kernel would run a program of the host's on a crash, if it has one for that: also at 0. */
static void try_core_limit(void) {
  static const rlim_t wanted[] = { 0, RLIM_INFINITY };
  /* A pointer whose lower half is empty. */
  struct rlimit *high = mmap((void *) 0x100000000, sizeof *high, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  struct rlimit limit, old;
  for (size_t i = 0; i < 2; i++) {
    limit.rlim_cur = limit.rlim_max = wanted[i];
    setrlimit(RLIMIT_CORE, &limit);
    syscall(SYS_setrlimit, RLIMIT_CORE, &limit);
    prlimit(getpid(), RLIMIT_CORE, &limit, 0);
    prlimit(0, RLIMIT_CORE, &limit, &old);
    if (high == MAP_FAILED) continue;
    *high = limit;
    syscall(SYS_prlimit64, 0, RLIMIT_CORE, high, 0);
    syscall(SYS_setrlimit, RLIMIT_CORE, high);
  }
  limit.rlim_cur = 1;
  setrlimit(RLIMIT_CORE, &limit);
  getrlimit(RLIMIT_CORE, &limit);
  outcome("limits.core_limit", limit.rlim_cur == 1 && limit.rlim_max == 1 ? "kept" : "changed");
}

/* Children that wait and can only be ended by us. */
static void try_fork_bomb(void) {
  static pid_t children[100000];
  int count = 0, error = 0;
  for (; count < 100000; count++) {
    pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    if (child < 0) {
      error = errno;
      break;
    }
    children[count] = child;
  }
  for (int i = 0; i < count; i++) kill(children[i], SIGKILL);
  while (wait(0) > 0) {}
  if (error) outcome_errno("limits.fork_bomb", error);
  else outcome("limits.fork_bomb", "endless");
}

static void try_descriptors(void) {
  int count = 0, error = 0;
  for (; count < 1 << 21; count++)
    if (open("/dev/null", O_RDONLY) < 0) {
      error = errno;
      break;
    }
  for (int i = 3; i < count + 3; i++) close(i);
  if (error) outcome_errno("limits.descriptors", error);
  else outcome("limits.descriptors", "endless");
}

/* At most four gigabytes, by a file that is gone once it is closed. */
static void fill(const char *name, const char *folder) {
  static char block[1 << 20];
  memset(block, 1, sizeof block);
  int descriptor = open(folder, O_TMPFILE | O_WRONLY, 0600);
  if (descriptor < 0 && errno == EOPNOTSUPP) {
    char path[64];
    snprintf(path, sizeof path, "%s/fill", folder);
    descriptor = open(path, O_CREAT | O_WRONLY, 0600);
    unlink(path);
  }
  int error = descriptor < 0 ? errno : 0;
  for (int i = 0; i < 4096 && !error; i++)
    if (write(descriptor, block, sizeof block) < 0) error = errno;
  if (descriptor >= 0) close(descriptor);
  if (error) outcome_errno(name, error);
  else outcome(name, "endless");
}

static void try_inodes(void) {
  char path[64];
  int count = 0, error = 0;
  const char *known = getenv("MOST_FILES");
  const int most = known ? atoi(known) : 2000000;
  mkdir("/tmp/inodes", 0700);
  for (; count < most; count++) {
    snprintf(path, sizeof path, "/tmp/inodes/%d", count);
    int descriptor = open(path, O_CREAT | O_WRONLY, 0600);
    if (descriptor < 0) {
      error = errno;
      break;
    }
    close(descriptor);
  }
  while (count--) {
    snprintf(path, sizeof path, "/tmp/inodes/%d", count);
    unlink(path);
  }
  rmdir("/tmp/inodes");
  if (error) outcome_errno("limits.inodes", error);
  else outcome("limits.inodes", "endless");
}

static void try_core_dump(void) {
  pid_t child = fork();
  if (child == 0) abort();
  int status = 0;
  waitpid(child, &status, 0);
  outcome("limits.core_dump", WCOREDUMP(status) ? "dumped" : "none");
  outcome("limits.core_file", access("core", F_OK) == 0 ? "there" : "none");
}

/* SCHED_FIFO would starve the host's own processes; a negative nice value as well. */
static void try_priority(void) {
  int priority = 1;
  tried("limits.realtime", syscall(SYS_sched_setscheduler, 0, 1, &priority));
  tried("limits.nice", setpriority(PRIO_PROCESS, 0, -10));
}

int main(void) {
  try_limits();
  try_core_limit();
  try_priority();
  try_descriptors();
  try_fork_bomb();
  fill("limits.shm", "/dev/shm");
  fill("limits.tmp", "/tmp");
  try_inodes();
  try_core_dump();
  return 0;
}
