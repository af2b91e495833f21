#include "client-shim/hip/kernel_stamps.h"

#include <atomic>

#include "client-shim/stub/elf_objects.h"

namespace xschedd::shim::hip {
namespace {

// hsa.h and hsa_ext_amd.h, as far as they are needed here.
using HsaStatus = int;
constexpr HsaStatus kHsaSuccess = 0;
constexpr HsaStatus kHsaError = 0x1000;
constexpr int kTimestampFrequency = 3;  // HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY
struct DispatchTime {
  uint64_t start;
  uint64_t end;
};
using GetDispatchTime = HsaStatus (*)(uint64_t agent, uint64_t signal, DispatchTime* time);
using GetSystemInfo = HsaStatus (*)(int attribute, void* value);

// A slot is being written while its number is odd; reading one checks that the number was the same before and after.
struct Slot {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> start_ns{0};
  std::atomic<uint64_t> end_ns{0};
};
constexpr uint64_t kSlots = 256;
Slot g_slots[kSlots];
std::atomic<uint64_t> g_written{0};
std::atomic<GetDispatchTime> g_real{nullptr};
std::atomic<uint64_t> g_frequency{0};

GetDispatchTime Resolve() {
  const ElfObject hsa = FindObjectByName("libhsa-runtime64.so");
  if (!hsa.IsFound()) return nullptr;
  const auto info = reinterpret_cast<GetSystemInfo>(FindSymbol(hsa, "hsa_system_get_info"));
  uint64_t frequency = 0;
  if (info != nullptr && info(kTimestampFrequency, &frequency) == kHsaSuccess) {
    g_frequency.store(frequency, std::memory_order_relaxed);
  }
  const auto real = reinterpret_cast<GetDispatchTime>(FindSymbol(hsa, "hsa_amd_profiling_get_dispatch_time"));
  // release: the frequency is there.
  g_real.store(real, std::memory_order_release);
  return real;
}

uint64_t ToNs(uint64_t ticks, uint64_t frequency) {
  constexpr uint64_t kSecond = 1'000'000'000;
  return ticks / frequency * kSecond + ticks % frequency * kSecond / frequency;
}

void Note(const DispatchTime& time) {
  const uint64_t frequency = g_frequency.load(std::memory_order_relaxed);
  // A marker of the runtime takes no time, and is no kernel.
  if (frequency == 0 || time.end <= time.start) return;
  const uint64_t index = g_written.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = g_slots[index % kSlots];
  slot.number.store(2 * index + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.start_ns.store(ToNs(time.start, frequency), std::memory_order_relaxed);
  slot.end_ns.store(ToNs(time.end, frequency), std::memory_order_relaxed);
  slot.number.store(2 * index + 2, std::memory_order_release);
}

}  // namespace

bool NextKernelStamp(uint64_t* cursor, Stamp* out) {
  for (;;) {
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
    // Overtaken by a newer one: on with that.
  }
}

}  // namespace xschedd::shim::hip

// Unversioned, like the entry points: it binds the runtime's versioned reference.
extern "C" __attribute__((visibility("default"))) int hsa_amd_profiling_get_dispatch_time(
    uint64_t agent, uint64_t signal, xschedd::shim::hip::DispatchTime* time) {
  using namespace xschedd::shim;
  using namespace xschedd::shim::hip;
  GetDispatchTime real = g_real.load(std::memory_order_acquire);
  if (real == nullptr) real = Resolve();
  if (real == nullptr) return kHsaError;
  const HsaStatus status = real(agent, signal, time);
  if (status == kHsaSuccess && time != nullptr) Note(*time);
  return status;
}
