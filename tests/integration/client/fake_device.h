// The test's own GPU runtime: streams on which work takes time, and events on them.
//
// It has no lock, and threads share only relaxed atomics: it orders nothing between threads, so that ThreadSanitizer
// checks what the client itself orders. Destroyed streams and events are really freed, so that either sanitizer reports
// a later use. Thread rule: as the runtime's own. A stream or event may be used by any thread, and be destroyed once no
// thread of the program uses it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client-shim/core/interface.h"
#include "common/clock.h"

namespace xschedd::test {

inline constexpr int kDevices = 2;

struct FakeStream {
  explicit FakeStream(int on) : device(on) {}
  const int device;
  std::atomic<std::uint64_t> busy_until_ns{0};
  std::atomic<bool> is_capturing{false};
};

struct FakeEvent {
  std::atomic<std::uint64_t> done_ns{0};  // 0: never recorded
};

class FakeDevice {
 public:
  static inline thread_local int current = 0;

  // The legacy default stream is each device's own, the per-thread one each thread's.
  static FakeStream& Of(void* handle) {
    static FakeStream legacy[kDevices] = {FakeStream(0), FakeStream(1)};
    if (reinterpret_cast<std::uintptr_t>(handle) == 2) {
      static thread_local FakeStream own[kDevices] = {FakeStream(0), FakeStream(1)};
      return own[current];
    }
    return handle == nullptr ? legacy[current] : *static_cast<FakeStream*>(handle);
  }

  // Returns the time at which it will have finished.
  static std::uint64_t Run(void* handle, std::uint64_t ns) {
    FakeStream& stream = Of(handle);
    std::uint64_t before = stream.busy_until_ns.load(std::memory_order_relaxed), end;
    do {
      end = std::max(before, MonotonicNs()) + ns;
    } while (!stream.busy_until_ns.compare_exchange_weak(before, end, std::memory_order_relaxed));
    std::atomic<std::uint64_t>& last = last_end_ns_[static_cast<std::size_t>(stream.device)];
    for (before = last.load(std::memory_order_relaxed); before < end;) {
      if (last.compare_exchange_weak(before, end, std::memory_order_relaxed)) break;
    }
    return end;
  }
  static void Record(void* event, void* handle) {
    static_cast<FakeEvent*>(event)->done_ns.store(Run(handle, 1), std::memory_order_relaxed);
  }
  static bool IsDone(std::uint64_t at_ns) { return MonotonicNs() >= at_ns; }
  static std::uint64_t EndOfAll() {
    return last_end_ns_[static_cast<std::size_t>(current)].load(std::memory_order_relaxed);
  }
  static std::uint64_t EndOf(void* handle) { return Of(handle).busy_until_ns.load(std::memory_order_relaxed); }

  static const shim::Vendor* Vendor() {
    static const shim::Vendor vendor = {
        .vendor = "amd",
        .runtime = "fake 1",
        .route = "symbols",
        .current_device = [] { return current; },
        .device_of_stream = [](void* stream) { return Of(stream).device; },
        .pci_address = [](int device, char* out,
                          std::size_t size) { return std::snprintf(out, size, "0000:%02x:ce.0", 0xfa + device) > 0; },
        .device_name = [](int, char* out, std::size_t size) { return std::snprintf(out, size, "fake device") > 0; },
        .compute_units = [](int) { return 100U; },
        .is_capturing = [](void* stream) { return Of(stream).is_capturing.load(std::memory_order_relaxed); },
        .create_marker = [](int) -> void* { return new FakeEvent; },
        .record_marker =
            [](int, void* marker, void* stream) {
              if (Of(stream).is_capturing.load(std::memory_order_relaxed)) {
                std::fprintf(stderr, "wrong: a marker was recorded on a stream that is being captured\n");
                std::_Exit(1);
              }
              Record(marker, stream);
              return true;
            },
        .query_marker =
            [](void* marker) {
              const std::uint64_t at = static_cast<FakeEvent*>(marker)->done_ns.load(std::memory_order_relaxed);
              return IsDone(at) ? shim::MarkerState::kDone : shim::MarkerState::kPending;
            },
        .query_stream =
            [](int, void* stream) {
              return IsDone(EndOf(stream)) ? shim::MarkerState::kDone : shim::MarkerState::kPending;
            },
        .elapsed_ns =
            [](void* from, void* to, std::int64_t* out) {
              *out = static_cast<std::int64_t>(static_cast<FakeEvent*>(to)->done_ns.load(std::memory_order_relaxed) -
                                               static_cast<FakeEvent*>(from)->done_ns.load(std::memory_order_relaxed));
              return true;
            },
        .next_stamp = [](std::uint64_t*, shim::Stamp*) { return false; },
        .device_uuid = [](int, char*, std::size_t) { return false; },
        .adopt_thread = [] {},
        .exchange_capture_mode =
            [](int mode) {
              static thread_local int now = 0;
              return std::exchange(now, mode);
            },
        .kernel_name = [](const shim::KernelRef&, void*) -> const char* { return "a_kernel"; },
        .set_time_slice = nullptr,
        .set_queue_priority = nullptr,
        .kept_by_pools = nullptr,
        .trim_pools = nullptr,
        .is_under_mps = nullptr,
    };
    return &vendor;
  }

 private:
  static inline std::array<std::atomic<std::uint64_t>, kDevices> last_end_ns_{};
};

}  // namespace xschedd::test
