// The daemon's pthread_create, which replaces the C library's in all libraries: it ends the daemon if a thread cannot
// be started.
//
// gRPC 1.51 gives each pool thread its own queue, and keeps queueing for a thread that it could not start
// (src/core/lib/iomgr/executor.cc ignores the result). Connections then stay half closed for good, and their
// descriptors leak; seen in tests/fault, `enomem`. A daemon that ends is restarted within milliseconds and resumes
// where it was (daemon/state); clients run freely meanwhile. Thread rule: any thread.
#include "daemon/threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "daemon/telemetry/log.h"

namespace xschedd {
namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

bool ends = false;

}  // namespace

void ExitWithoutThreads() {
  ends = true;
}

}  // namespace xschedd

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) noexcept {
  static const auto create = reinterpret_cast<xschedd::Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  const int error = create(thread, attributes, run, argument);
  if ((error == EAGAIN || error == ENOMEM) && xschedd::ends) {
    xschedd::WriteLastLine(
        "xschedd: cannot start a thread, and exits so that systemd restarts it; raise TasksMax and MemoryMax of "
        "xschedd.service\n");
    ::_exit(EXIT_FAILURE);
  }
  return error;
}
