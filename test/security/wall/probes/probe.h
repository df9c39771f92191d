/* What every probe shares: it tries things and prints one line for each, `name: outcome`. The outcome is
 * the name of an errno, or what the probe says itself. The manifest says which outcomes are right. */
#ifndef PROBE_H
#define PROBE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void outcome(const char *name, const char *what) {
  printf("%s: %s\n", name, what);
  fflush(stdout);
}

static inline void outcome_errno(const char *name, int error) {
  const char *text = strerrorname_np(error);
  outcome(name, text ? text : "unknown errno");
}

/* For calls that return -1 and set errno; anything else is `allowed`. */
static inline void tried(const char *name, long result) {
  int error = errno;
  if (result == -1) outcome_errno(name, error);
  else outcome(name, "allowed");
}

/* The same for something that opens a descriptor, which is closed again. */
static inline void opened(const char *name, int descriptor) {
  tried(name, descriptor);
  if (descriptor >= 0) close(descriptor);
}

#endif
