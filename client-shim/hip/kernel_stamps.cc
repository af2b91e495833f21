#include "client-shim/hip/kernel_stamps.h"

#include <atomic>

#include "client-shim/hip/hsa.h"

namespace xschedd::shim::hip {

// hsa_amd_profiling_dispatch_time_t, in ticks.
struct DispatchTime {
  uint64_t start;
  uint64_t end;
};

namespace {

// From hsa.h and hsa_ext_amd.h.
constexpr int kTimestampFrequency = 3;  // HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY

// A ring of stamps that any thread writes and the tracker reads: each slot is a seqlock. Its number is odd while it is
// being written; a reader checks that the number is the same before and after.
struct Slot {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> start_ns{0};
  std::atomic<uint64_t> end_ns{0};
};
constexpr uint64_t kSlots = 256;
Slot g_slots[kSlots];
std::atomic<uint64_t> g_written{0};
constinit HsaFunction<uint64_t, uint64_t, DispatchTime*> g_get_dispatch_time("hsa_amd_profiling_get_dispatch_time");
constinit HsaFunction<int, void*> g_system_info("hsa_system_get_info");
std::atomic<uint64_t> g_frequency{0};

// Ticks per second; 0: not known.
uint64_t Frequency() {
  // relaxed: whoever finds none asks for it, and is told the same.
  uint64_t frequency = g_frequency.load(std::memory_order_relaxed);
  if (frequency == 0 && g_system_info(kTimestampFrequency, &frequency) == kHsaSuccess)
    g_frequency.store(frequency, std::memory_order_relaxed);
  return frequency;
}

uint64_t ToNs(uint64_t ticks, uint64_t frequency) {
  constexpr uint64_t kSecond = 1'000'000'000;
  return ticks / frequency * kSecond + ticks % frequency * kSecond / frequency;
}

void Note(const DispatchTime& time) {
  const uint64_t frequency = Frequency();
  // A marker of the runtime takes no time, and is not a kernel.
  if (frequency == 0 || time.end <= time.start) return;
  // acq_rel: gives each writer a slot; only the slot's own number publishes its values.
  const uint64_t index = g_written.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = g_slots[index % kSlots];
  // relaxed: the release fence orders it before the values, and the release store of the even number comes after them.
  slot.number.store(2 * index + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.start_ns.store(ToNs(time.start, frequency), std::memory_order_relaxed);
  slot.end_ns.store(ToNs(time.end, frequency), std::memory_order_relaxed);
  slot.number.store(2 * index + 2, std::memory_order_release);
}

}  // namespace

bool NextKernelStamp(uint64_t* cursor, Stamp* out) {
  for (;;) {
    // acquire, here and for the number: pairs with the writer's stores. The acquire fence orders the values before the
    // second load of the number.
    const uint64_t written = g_written.load(std::memory_order_acquire);
    if (*cursor >= written) return false;
    if (written - *cursor > kSlots) *cursor = written - kSlots;
    const uint64_t index = *cursor;
    const Slot& slot = g_slots[index % kSlots];
    const uint64_t before = slot.number.load(std::memory_order_acquire);
    if (before < 2 * index + 2) return false;  // being written: next time
    *out = Stamp{slot.start_ns.load(std::memory_order_relaxed), slot.end_ns.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    ++*cursor;
    if (slot.number.load(std::memory_order_relaxed) == 2 * index + 2) return true;
    // Overwritten by a newer one meanwhile: continue with the next.
  }
}

}  // namespace xschedd::shim::hip

// Unversioned, like the entry points: the runtime's versioned reference binds to it.
int hsa_amd_profiling_get_dispatch_time(uint64_t agent, uint64_t signal, xschedd::shim::hip::DispatchTime* time) {
  using namespace xschedd::shim;
  using namespace xschedd::shim::hip;
  const HsaStatus status = g_get_dispatch_time(agent, signal, time);
  if (status == kHsaSuccess && time != nullptr) Note(*time);
  return status;
}
