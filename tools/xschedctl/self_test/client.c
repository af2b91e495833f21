/* A client of the self test of `xschedctl doctor`: an ordinary program that uses HIP, which here is fake_hip.c, and
 * knows nothing of priorities.
 *
 *   self-test-client RUNTIME PCI_ADDRESS
 *
 * Answers each line of its input with a number on a line:
 *
 *   attach   launches once; the state of the shim, see xschedd.h
 *   work     launches from now on; 0
 *   rest     launches no more; 0 when all has finished
 *   count    the launches so far
 *
 * Ends with its input, as a program does. Thread rule: the launching thread and the reading one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define XSCHEDD_DLSYM
#include "client-shim/include/xschedd.h"

typedef struct {
  uint32_t x, y, z;
} dim3;
typedef int (*launch_function)(const void*, dim3, dim3, void**, size_t, void*);
typedef int (*wait_function)(void*);
typedef int (*create_function)(void**);
typedef int (*record_function)(void*, void*);

static launch_function launch;
static wait_function wait_for, wait_for_event;
static create_function create;
static record_function record;
static atomic_int wanted; /* 1: work */
static atomic_int works;
static atomic_ulong launches;

static void launch_one(void) {
  const dim3 one = {1, 1, 1};
  if (launch(NULL, one, one, NULL, 0, NULL) == 0) atomic_fetch_add(&launches, 1);
}

/* Four launches always wait behind those that run, so that the device never idles while this works. */
static void* work(void* unused) {
  const struct timespec pause = {0, 1000000};
  void* behind[2] = {NULL, NULL};
  create(&behind[0]);
  create(&behind[1]);
  for (unsigned turn = 0;; ++turn) {
    while (!atomic_load(&wanted)) {
      wait_for(NULL);
      atomic_store(&works, 0);
      nanosleep(&pause, NULL);
    }
    atomic_store(&works, 1);
    for (int i = 0; i < 4; ++i)
      launch_one();
    record(behind[turn % 2], NULL);
    wait_for_event(behind[(turn + 1) % 2]);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const hip = dlopen(argv[1], RTLD_NOW);
  if (hip == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*set_address)(const char*);
  *(void**)&set_address = dlsym(hip, "self_test_address");
  *(void**)&launch = dlsym(hip, "hipLaunchKernel");
  *(void**)&wait_for = dlsym(hip, "hipStreamSynchronize");
  *(void**)&wait_for_event = dlsym(hip, "hipEventSynchronize");
  *(void**)&create = dlsym(hip, "hipEventCreate");
  *(void**)&record = dlsym(hip, "hipEventRecord");
  if (!set_address || !launch || !wait_for || !wait_for_event || !create || !record) return 1;
  set_address(argv[2]);
  pthread_t worker;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 1;

  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    unsigned long answer = 0;
    const struct timespec pause = {0, 1000000};
    if (strcmp(line, "attach\n") == 0) {
      launch_one();
      wait_for(NULL);
      xschedd_status status;
      memset(&status, 0, sizeof status);
      status.size = sizeof status;
      answer = xschedd_get_status(&status) == XSCHEDD_OK ? (unsigned long)status.state : 9;
    } else if (strcmp(line, "work\n") == 0) {
      atomic_store(&wanted, 1);
    } else if (strcmp(line, "rest\n") == 0) {
      atomic_store(&wanted, 0);
      while (atomic_load(&works))
        nanosleep(&pause, NULL);
    } else {
      answer = atomic_load(&launches);
    }
    printf("%lu\n", answer);
    fflush(stdout);
  }
  return 0;
}
