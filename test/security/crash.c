/* Crashes in every way that might bring the host to hear of it, and says of each whether the kernel has dumped a core. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(rlim_t value) {
  struct rlimit limit = { value, value };
  setrlimit(RLIMIT_CORE, &limit);
  limit.rlim_max = 1;
  setrlimit(RLIMIT_CORE, &limit);
  syscall(SYS_setrlimit, RLIMIT_CORE, &limit);
}

static void fault(void) { *(volatile int *) 8 = 1; }
static void plain(void) { fault(); }
static void aborts(void) { abort(); }
static void quits(void) { raise(SIGQUIT); }
static void limit_none(void) { limit(0); fault(); }
static void limit_endless(void) { limit(RLIM_INFINITY); fault(); }
static void dumpable(void) { prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); fault(); }
static void all_memory(void) {
  FILE *filter = fopen("/proc/self/coredump_filter", "w");
  if (filter) {
    fputs("0xff", filter);
    fclose(filter);
  }
  fault();
}

int main(void) {
  static const struct { const char *name; void (*crash)(void); } ways[] = {
    { "fault", plain }, { "abort", aborts }, { "quit", quits }, { "dumpable", dumpable },
    { "no limit", limit_endless }, { "limit 0", limit_none }, { "all memory", all_memory },
  };
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    pid_t child = fork();
    if (child == 0) {
      ways[i].crash();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%s: %s\n", ways[i].name, !WIFSIGNALED(status) ? "alive" : WCOREDUMP(status) ? "dumped" : "gone");
  }
  return 0;
}
