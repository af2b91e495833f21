// HSA signals. The HIP runtime reads amd_signal_t itself (value and time stamps), so a signal starts with that
// structure; the rest is private.
//
// Writes go through set and add, which wake waiters. After hsa_amd_signal_value_pointer the value may be written
// without a notification; waits on such a signal poll. A signal's memory is never returned to the system: a writer may
// still check for waiters when the thread that it woke has already destroyed the signal. Thread rule: any thread.
#pragma once

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

#include "tools/softgpu/hsa/futex.h"

namespace softgpu {

class Queue;

struct alignas(64) Signal {
  amd_signal_t abi;
  Queue* doorbell_of;                    // not null: a doorbell
  std::atomic<uint64_t> device_done_ns;  // device time of the completion that changed it last; 0: the host did.
                                         // relaxed, ordered by the value
  std::atomic<uint32_t> watchers;        // seq_cst: async handlers and OR barriers, see EventCount
  std::atomic<bool> written_directly;    // relaxed: once set, stays
  EventCount changed;

  static Signal* from(hsa_signal_t handle) { return reinterpret_cast<Signal*>(handle.handle); }
  hsa_signal_t handle() const { return {reinterpret_cast<uint64_t>(this)}; }

  // seq_cst satisfies every order that HSA names; EventCount needs it.
  std::atomic_ref<int64_t> value() { return std::atomic_ref<int64_t>(const_cast<int64_t&>(abi.value)); }

  void set(int64_t value);
  int64_t add(int64_t delta);  // returns the value before
  void notify();
  // Completes a packet or copy that ran from start to end, in device time: sets the time stamps, then decrements.
  void complete(uint64_t start_ns, uint64_t end_ns);
};
static_assert(sizeof(Signal) == 128);

Signal* make_signal(int64_t value);
void free_signal(Signal* signal);

bool satisfied(hsa_signal_condition_t condition, int64_t value, int64_t compare);

// Blocks until (value & mask) satisfies the condition, or `deadline_ns`; returns the value seen last.
int64_t wait_signal(Signal& signal, hsa_signal_condition_t condition, int64_t compare, uint64_t deadline_ns,
                    int64_t mask = -1);

// Notified on a change of any signal that has watchers.
EventCount& watched_signals_changed();

}  // namespace softgpu
