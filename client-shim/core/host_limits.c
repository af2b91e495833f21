/* What the libraries linked into libxschedd-client.so may learn from, and leave behind in, the host process. The linker
 * sends their calls here (--wrap): see client-shim/meson.build.
 * Thread rule: any thread. */
#include <unistd.h>

/* gRPC makes threads by the number of processors: 53 on 128 cores (shared reference grpc-in-a-preload.md, 1.4). */
enum { kMostProcessors = 2 };

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's. */
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) {
  const long value = __real_sysconf(name);
  const int is_count = name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN;
  return is_count && value > kMostProcessors ? kMostProcessors : value;
}

/* No destructor of a static object runs at the host's exit: threads of ours are still in there, and gRPC's would wait
 * for them for ever. The system takes everything back. */
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
/* NOLINTEND(bugprone-reserved-identifier) */
