#include "tools/softgpu/hsa/signal.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

constexpr uint64_t kSignalPollNs = 50'000;
constexpr size_t kSlab = 256;

std::mutex pool_lock;
std::vector<Signal*>& free_list() {
  static auto* list = new std::vector<Signal*>;  // leaked, see runtime.h
  return *list;
}

}  // namespace

EventCount& watched_signals_changed() {
  static EventCount event;
  return event;
}

Signal* make_signal(int64_t value) {
  Signal* signal = nullptr;
  {
    const std::lock_guard guard(pool_lock);
    auto& list = free_list();
    if (list.empty()) {
      auto* slab = static_cast<Signal*>(::operator new (kSlab * sizeof(Signal), std::align_val_t{alignof(Signal)}));
      for (size_t i = 0; i < kSlab; ++i)
        list.push_back(new (slab + i) Signal{});
    }
    signal = list.back();
    list.pop_back();
  }
  signal->abi = {};
  signal->abi.kind = AMD_SIGNAL_KIND_USER;
  signal->doorbell_of = nullptr;
  signal->device_done_ns.store(0, std::memory_order_relaxed);
  signal->written_directly.store(false, std::memory_order_relaxed);
  signal->value().store(value);
  return signal;
}

void free_signal(Signal* signal) {
  signal->abi.kind = AMD_SIGNAL_KIND_INVALID;
  const std::lock_guard guard(pool_lock);
  free_list().push_back(signal);
}

void Signal::notify() {
  changed.notify();
  if (watchers.load(std::memory_order_seq_cst) != 0) watched_signals_changed().notify();
}

void Signal::set(int64_t new_value) {
  device_done_ns.store(0, std::memory_order_relaxed);
  value().store(new_value);
  notify();
}

int64_t Signal::add(int64_t delta) {
  device_done_ns.store(0, std::memory_order_relaxed);
  const int64_t before = value().fetch_add(delta);
  notify();
  return before;
}

void Signal::complete(uint64_t start_ns, uint64_t end_ns) {
  abi.start_ts = start_ns;
  abi.end_ts = end_ns;
  device_done_ns.store(end_ns, std::memory_order_relaxed);
  value().fetch_sub(1);
  notify();
}

bool satisfied(hsa_signal_condition_t condition, int64_t value, int64_t compare) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == compare;
    case HSA_SIGNAL_CONDITION_NE:
      return value != compare;
    case HSA_SIGNAL_CONDITION_LT:
      return value < compare;
    case HSA_SIGNAL_CONDITION_GTE:
      return value >= compare;
  }
  return true;
}

int64_t wait_signal(Signal& signal, hsa_signal_condition_t condition, int64_t compare, uint64_t deadline_ns,
                    int64_t mask) {
  for (;;) {
    int64_t value = signal.value().load() & mask;
    if (satisfied(condition, value, compare)) return value;
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return value;
    // In a child of fork nothing would ever change it: report success, so that the child can exit.
    if (inert()) return compare;
    const uint32_t ticket = signal.changed.prepare();
    value = signal.value().load() & mask;
    if (satisfied(condition, value, compare)) {
      signal.changed.cancel();
      return value;
    }
    const bool polled = signal.written_directly.load(std::memory_order_relaxed);
    signal.changed.wait(ticket, polled ? std::min(deadline_ns, now + kSignalPollNs) : deadline_ns);
  }
}

}  // namespace softgpu
