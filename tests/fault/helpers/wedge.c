// wedge PID TID MS: stops one thread of another process for MS milliseconds, like a thread that hangs in a system call
// or on a lock, while the others run. It prints "wedged" when the thread has stopped. Thread rule: one thread.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char* what) {
  fprintf(stderr, "wedge: %s: %s\n", what, strerror(errno));
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: wedge PID TID MS\n");
    return 2;
  }
  const pid_t thread = (pid_t)atoi(argv[2]);
  if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) return fail("PTRACE_SEIZE");
  if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) return fail("PTRACE_INTERRUPT");
  int status = 0;
  if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return fail("the thread did not stop");
  printf("wedged\n");
  fflush(stdout);
  usleep((useconds_t)atoi(argv[3]) * 1000);
  if (ptrace(PTRACE_DETACH, thread, NULL, NULL) != 0 && errno != ESRCH) return fail("PTRACE_DETACH");
  return 0;
}
