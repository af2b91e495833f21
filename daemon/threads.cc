// The daemon's pthread_create, which goes before the C library's for the libraries as well: a thread that cannot be
// started ends the daemon.
//
// gRPC 1.51 gives each thread of its pool a queue of its own, and goes on queueing for a thread that it could not start
// (src/core/lib/iomgr/executor.cc does not look at the result): connections then stay half closed for good, and their
// descriptors are lost. Seen in tests/fault, `enomem`. A daemon that ends is started again within milliseconds, and
// goes on where it was (daemon/state); clients run freely meanwhile.
// Thread rule: any thread.
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
    xschedd::SayLast(
        "xschedd: a thread cannot be started; ends, to be started again; raise TasksMax and MemoryMax of "
        "xschedd.service\n");
    ::_exit(EXIT_FAILURE);
  }
  return error;
}
