// How hsa_*_get_info answers: the value's bytes go where the caller said. Thread rule: pure.
#pragma once

#include <hsa/hsa.h>

#include <cstring>

namespace softgpu {

// `value` has room for a T, whatever its alignment.
template <typename T>
hsa_status_t answer(void* value, T content) {
  std::memcpy(value, &content, sizeof content);
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
