// The meeting point of the two ranks of a gang: shared memory, written by the host functions of their kernels.
#pragma once

#include <atomic>
#include <cstdint>

namespace e2e {

struct Meeting {
  std::atomic<std::uint32_t> arrived[2];  // the round that each rank's kernel has reached
  std::atomic<std::uint32_t> missed;      // kernels that waited in vain
  std::atomic<std::uint32_t> asked;       // set by the test (at this offset of the file): not 0: end soon
  std::atomic<std::uint32_t> last;        // the last round of both ranks, once it is known; 0 before
};

}  // namespace e2e
