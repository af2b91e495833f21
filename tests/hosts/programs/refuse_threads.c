/* Preloaded behind the shim: the client library gets $REFUSE_AFTER threads and then none, as with a limit of
 * processes. Thread rule: any thread. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef int (*create_function)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                          void* (*run)(void*), void* argument) {
  static atomic_int given;
  Dl_info caller;
  const char* after = getenv("REFUSE_AFTER");
  const int is_shims = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != NULL &&
                       strstr(caller.dli_fname, "libxschedd-client") != NULL;
  if (is_shims && after != NULL && atomic_fetch_add(&given, 1) >= atoi(after)) return EAGAIN;
  create_function real = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, run, argument);
}
