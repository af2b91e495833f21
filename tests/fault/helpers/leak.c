// Preloaded into the daemon, as sabotage: every accepted connection leaks a descriptor. Thread rule: any thread.
#include <dlfcn.h>
#include <unistd.h>

// As sys/socket.h has it, which must not be included: its own declaration is of a type that has no name in ISO C.
int accept4(int listening, void* address, void* size, int flags);

int accept4(int listening, void* address, void* size, int flags) {
  int (*real)(int, void*, void*, int);
  *(void**)&real = dlsym(RTLD_NEXT, "accept4");
  const int connection = real(listening, address, size, flags);
  if (connection >= 0 && dup(connection) < 0) return connection;
  return connection;
}
