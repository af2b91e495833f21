// Whether a run leaves descriptors open. Thread rule: the target's thread.
#pragma once

#include <unistd.h>

#include <utility>

#include "tests/fuzz/input.h"

namespace xschedd::fuzz {

// The lowest free number: if it is the same before and after, nothing leaked below it.
inline int LowestFree() {
  const int fd = ::dup(STDERR_FILENO);
  ::close(fd);
  return fd;
}

// Calls `run` and checks that it leaves no descriptor open, except in the first call, which opens some that stay open.
template <typename Run>
void CheckNoLeak(Run run) {
  static bool is_first = true;
  const int before = LowestFree();
  run();
  FUZZ_CHECK(std::exchange(is_first, false) || LowestFree() == before);
}

}  // namespace xschedd::fuzz
