// A libcuda.so.1 of a driver that does not work: it fails as $BROKEN_CUDA says. Thread rule: any thread.
#include <stdlib.h>

int cuInit(unsigned flags) {
  const char* status = getenv("BROKEN_CUDA");
  (void)flags;
  return status == NULL ? 100 : atoi(status);
}
