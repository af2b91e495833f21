// hsa_signal_* and hsa_amd_signal_*, except asynchronous handlers. Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <immintrin.h>

#include "tools/softgpu/hsa/queue.h"
#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/hsa/signal.h"

namespace softgpu {

namespace {

// How long a wait in the active state spins before it blocks: about the time of a wake-up, so that it costs little more
// than blocking.
constexpr uint64_t kSpinNs = 5'000;

void store(hsa_signal_t handle, hsa_signal_value_t value) {
  Signal* signal = Signal::from(handle);
  if (signal->doorbell_of != nullptr) {
    signal->doorbell_of->ring_doorbell(static_cast<uint64_t>(value));
  } else {
    signal->set(value);
  }
}

hsa_signal_value_t wait(hsa_signal_t handle, hsa_signal_condition_t condition, hsa_signal_value_t compare,
                        uint64_t timeout, hsa_wait_state_t state) {
  Signal& signal = *Signal::from(handle);
  int64_t value = signal.value().load();
  if (satisfied(condition, value, compare) || timeout == 0) return value;
  const uint64_t begin = now_ns();
  const uint64_t deadline = timeout > kForever - begin ? kForever : begin + timeout;
  if (state == HSA_WAIT_STATE_ACTIVE) {
    for (uint64_t now = begin; now < begin + kSpinNs && now < deadline; now = now_ns()) {
      value = signal.value().load();
      if (satisfied(condition, value, compare)) return value;
      _mm_pause();
    }
  }
  return wait_signal(signal, condition, compare, deadline);
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_signal_create(hsa_signal_value_t initial, uint32_t, const hsa_agent_t*,
                                           hsa_signal_t* signal) {
  if (signal == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *signal = make_signal(initial)->handle();
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial, uint32_t, const hsa_agent_t*, uint64_t,
                                               hsa_signal_t* signal) {
  return hsa_signal_create(initial, 0, nullptr, signal);
}

SOFTGPU_API hsa_status_t hsa_signal_destroy(hsa_signal_t signal) {
  if (signal.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  free_signal(Signal::from(signal));
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) {
  return Signal::from(signal)->value().load();
}
SOFTGPU_API hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) {
  return Signal::from(signal)->value().load();
}
SOFTGPU_API void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  store(signal, value);
}
SOFTGPU_API void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  store(signal, value);
}

// "Silent": wakes no waiter.
SOFTGPU_API void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal* s = Signal::from(signal);
  s->device_done_ns.store(0, std::memory_order_relaxed);
  s->value().store(value);
}
SOFTGPU_API void hsa_signal_silent_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  hsa_signal_silent_store_relaxed(signal, value);
}

SOFTGPU_API void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->add(value);
}
SOFTGPU_API void hsa_signal_add_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->add(value);
}
SOFTGPU_API void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->add(-value);
}
SOFTGPU_API void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->add(-value);
}

SOFTGPU_API hsa_signal_value_t hsa_signal_exchange_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal* s = Signal::from(signal);
  const int64_t before = s->value().exchange(value);
  s->notify();
  return before;
}

SOFTGPU_API hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                         hsa_signal_value_t compare, uint64_t timeout,
                                                         hsa_wait_state_t state) {
  return wait(signal, condition, compare, timeout, state);
}
SOFTGPU_API hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                       hsa_signal_value_t compare, uint64_t timeout,
                                                       hsa_wait_state_t state) {
  return wait(signal, condition, compare, timeout, state);
}

SOFTGPU_API hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t** pointer) {
  if (signal.handle == 0 || pointer == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Signal* s = Signal::from(signal);
  s->written_directly.store(true, std::memory_order_relaxed);
  *pointer = &s->abi.value;
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
