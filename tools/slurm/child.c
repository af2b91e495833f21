#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_EXECUTE = 127 };

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void close_from(int first) {
  struct rlimit limit;
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 65536) limit.rlim_cur = 65536;
  for (int fd = first; fd < (int)limit.rlim_cur; ++fd)
    close(fd);
}

static void become(char* const arguments[], char* const environment[], int output) {
  struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
  sigset_t none;
  setpgid(0, 0);
  for (int number = 1; number < NSIG; ++number)
    sigaction(number, &standard, NULL);
  /* At the end of a step, Slurm sends SIGTERM to what slurmstepd has started. */
  sigaction(SIGTERM, &ignored, NULL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int input = open("/dev/null", O_RDONLY);
  /* First moved above 2: the caller may have closed its own standard streams. */
  int safe = fcntl(output, F_DUPFD, 3);
  if (input >= 0) dup2(input, STDIN_FILENO);
  dup2(safe, STDOUT_FILENO);
  dup2(safe, STDERR_FILENO);
  close_from(3);
  execve(arguments[0], arguments, environment);
  _exit(CANNOT_EXECUTE);
}

/* Reads until the other end is closed. False: the time ran out. */
static int read_until(int fd, long long end, char* text, size_t size) {
  size_t length = 0;
  char dropped[512];
  for (;;) {
    long long left = end - now_ms();
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    if (left <= 0) return 0;
    if (poll(&poll_fd, 1, (int)left) <= 0) continue;
    int is_full = length + 1 >= size;
    ssize_t count = is_full ? read(fd, dropped, sizeof dropped) : read(fd, text + length, size - 1 - length);
    if (count == 0) return 1;
    if (count < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return 1;
    }
    if (!is_full) length += (size_t)count;
    text[length] = '\0';
  }
}

/* Waits for the child to end. False: the time ran out. */
static int wait_until(pid_t child, long long end, int* status) {
  const struct timespec pause = {.tv_nsec = 2000000};
  for (;;) {
    pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == child) return 1;
    if (ended < 0 && errno != EINTR) {
      *status = 0; /* somebody else in this process has waited for it */
      return 1;
    }
    if (now_ms() >= end) return 0;
    nanosleep(&pause, NULL);
  }
}

int child_run(char* const arguments[], char* const environment[], int limit_ms, char* text, size_t size, int* status) {
  int ends[2];
  int raw = 0;
  long long end = now_ms() + limit_ms;
  text[0] = '\0';
  *status = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  pid_t child = fork();
  if (child < 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  if (child == 0) become(arguments, environment, ends[1]);
  close(ends[1]);
  setpgid(child, child); /* also here: the kill below may come before the child's own */
  int in_time = read_until(ends[0], end, text, size);
  close(ends[0]);
  in_time = in_time && wait_until(child, end, &raw);
  if (!in_time) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (waitpid(child, &raw, 0) < 0 && errno == EINTR) {
    }
    return ETIMEDOUT;
  }
  *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return *status == CANNOT_EXECUTE ? ENOENT : 0;
}
