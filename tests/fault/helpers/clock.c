// Preloaded into the daemon: CLOCK_REALTIME jumps by an offset in a file, at any moment. CLOCK_MONOTONIC, on which all
// leases and decisions are based, cannot be set and does not jump.
//   FAULT_CLOCK_FILE   a file of at least 8 bytes, mapped: nanoseconds, signed, added to CLOCK_REALTIME
// Thread rule: any thread; the file's word is read atomically.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t* jump;
static int (*real)(clockid_t, struct timespec*);

__attribute__((constructor)) static void start(void) {
  const char* path = getenv("FAULT_CLOCK_FILE");
  const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd >= 0) {
    void* address = mmap(NULL, sizeof *jump, PROT_READ, MAP_SHARED, fd, 0);
    if (address != MAP_FAILED) jump = address;
    close(fd);
  }
  unsetenv("LD_PRELOAD");
}

static void add(struct timespec* time, int64_t ns) {
  const int64_t all = time->tv_nsec + ns;
  int64_t carry = all / 1000000000, rest = all % 1000000000;
  if (rest < 0) rest += 1000000000, --carry;
  time->tv_sec += carry;
  time->tv_nsec = rest;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (result != 0) return result;
  const int is_real = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (is_real && jump != NULL) add(time, *jump);
  return 0;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}
