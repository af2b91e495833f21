/* Limits what the libraries that are linked into libxschedd-client.so learn from the host process, do to it, and leave
 * behind in it. The linker redirects their calls here (--wrap, client-shim/meson.build).
 * Thread rule: any thread. */
#include "client-shim/core/host_limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* gRPC makes threads by the number of processors: 53 on 128 cores (shared reference grpc-in-a-preload.md, 1.4). */
enum { kMaxProcessors = 2 };

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's. */
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) {
  const long value = __real_sysconf(name);
  const int is_count = name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN;
  return is_count && value > kMaxProcessors ? kMaxProcessors : value;
}

/* gRPC's variables are for a gRPC of the host's own. Here, GRPC_ENABLE_FORK_SUPPORT would install fork handlers, and
 * GRPC_TRACE would write to the host's standard error. */
static int is_grpc_variable(const char* name) {
  return strncmp(name, "GRPC_", 5) == 0;
}
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);
char* __wrap_getenv(const char* name) {
  return is_grpc_variable(name) ? NULL : __real_getenv(name);
}
char* __real_secure_getenv(const char* name);
char* __wrap_secure_getenv(const char* name);
char* __wrap_secure_getenv(const char* name) {
  return is_grpc_variable(name) ? NULL : __real_secure_getenv(name);
}

/* No static object is destroyed at the host's exit: our threads still use them, and gRPC's destructors would wait for
 * these threads forever. The system frees everything. */
int __wrap_atexit(void (*function)(void));
int __wrap_atexit(void (*function)(void)) {
  (void)function;
  return 0;
}
int __wrap___cxa_atexit(void (*function)(void*), void* argument, void* object);
int __wrap___cxa_atexit(void (*function)(void*), void* argument, void* object) {
  (void)function;
  (void)argument;
  (void)object;
  return 0;
}

/* Threads get a small stack, for hosts that have little address space or lock their memory. Threads of the default size
 * are gRPC's, which need little; the agent, which calls the GPU's runtime, sets its own size. */
enum { kStackSize = 256 * 1024 };
static __thread int is_ours;
struct start {
  void* (*run)(void*);
  void* argument;
};
static void* run(void* data) {
  const struct start start = *(struct start*)data;
  free(data);
  is_ours = 1;
  return start.run(start.argument);
}
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                          void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                          void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                          void* argument) {
  struct start* start = malloc(sizeof *start);
  if (start == NULL) return EAGAIN;
  *start = (struct start){function, argument};
  pthread_attr_t copy;
  int state = PTHREAD_CREATE_JOINABLE;
  size_t size = 0;
  size_t ordinary = 0;
  pthread_attr_init(&copy);
  pthread_attr_getstacksize(&copy, &ordinary);
  if (attributes != NULL) {
    pthread_attr_getdetachstate(attributes, &state);
    pthread_attr_getstacksize(attributes, &size);
  }
  pthread_attr_setdetachstate(&copy, state);
  pthread_attr_setstacksize(&copy, size == 0 || size == ordinary ? (size_t)kStackSize : size);
  const int error = __real_pthread_create(thread, &copy, run, start);
  pthread_attr_destroy(&copy);
  if (error != 0) free(start);
  return error;
}

/* gRPC, abseil and the C++ runtime abort when they cannot continue (no descriptor for a wake-up, no thread left). A
 * thread of ours then sleeps forever instead, and the process runs on unscheduled. A thread of the host's really
 * aborts. */
void __real_abort(void) __attribute__((noreturn));
void __wrap_abort(void) __attribute__((noreturn));
void __wrap_abort(void) {
  if (is_ours) {
    xschedd_library_failed();
    for (;;)
      pause();
  }
  __real_abort();
}
void __wrap___assert_fail(const char* what, const char* file, unsigned line, const char* function)
    __attribute__((noreturn));
void __wrap___assert_fail(const char* what, const char* file, unsigned line, const char* function) {
  (void)what;
  (void)file;
  (void)line;
  (void)function;
  __wrap_abort();
}
/* NOLINTEND(bugprone-reserved-identifier) */
