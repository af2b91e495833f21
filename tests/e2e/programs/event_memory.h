// The shared memory of interprocess events: HIP 5.2.3 makes a file of it and leaves it behind. Its name is the handle.
// Thread rule: any thread.
#pragma once

#include <hip/hip_runtime.h>
#include <string.h>
#include <sys/mman.h>

#include <string>

namespace e2e {

inline void UnlinkEventMemory(const hipIpcEventHandle_t& handle) {
  const std::string name(handle.reserved, strnlen(handle.reserved, sizeof handle.reserved));
  if (name.rfind("/hip_event", 0) == 0) shm_unlink(name.c_str());
}

}  // namespace e2e
