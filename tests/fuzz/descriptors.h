// Whether a run leaves descriptors open. Thread rule: the target's thread.
#pragma once

#include <unistd.h>

namespace xschedd::fuzz {

// The lowest free number: if it is the same before and after, nothing leaked below it.
inline int LowestFree() {
  const int fd = ::dup(STDERR_FILENO);
  ::close(fd);
  return fd;
}

}  // namespace xschedd::fuzz
