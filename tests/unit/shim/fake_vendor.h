// A runtime for the tracker's tests: events complete when the test says that their stream has reached them. Thread
// rule: markers, any thread; the rest, one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "client-shim/core/interface.h"

namespace xschedd::shim {

class FakeVendor {
 public:
  FakeVendor() { current = this; }

  // A launch was made with `stop` as its stop event. `kernel`: the stamp that the runtime reads when it is asked for
  // that event's time, as from ROCm 6.4 on.
  void LaunchTimed(void* stop, void* stream, std::optional<Stamp> kernel = std::nullopt) {
    const std::lock_guard lock(mutex);
    *static_cast<Marker*>(stop) = Marker{stream, true, false, 0, kernel};
  }
  // Everything recorded on `stream` up to now has finished at `time_ns`.
  void Finish(void* stream, std::uint64_t time_ns) {
    const std::lock_guard lock(mutex);
    for (auto& marker : markers) {
      if (marker->stream == stream && marker->is_recorded && !marker->is_done) {
        marker->is_done = true;
        marker->time_ns = time_ns;
      }
    }
  }
  // One marker is reached.
  void FinishMarker(void* handle, std::uint64_t time_ns) {
    const std::lock_guard lock(mutex);
    auto* marker = static_cast<Marker*>(handle);
    marker->is_done = true;
    marker->time_ns = time_ns;
  }
  // The markers recorded since the last call, in order.
  std::vector<void*> TakeRecorded() { return std::exchange(recorded, {}); }
  std::size_t Recorded() const { return records; }

  const Vendor* Table() const {
    static const Vendor vendor = {
        "fake",
        "fake 1",
        "test",
        [] { return 0; },
        [](void*) { return 0; },
        [](int, char*, std::size_t) { return false; },
        [](int, char*, std::size_t) { return false; },
        [](int) { return 0u; },
        [](void*) { return false; },
        [](int) { return current->Create(); },
        [](int, void* marker, void* stream) { return current->Record(marker, stream); },
        [](void* marker) { return current->Query(marker); },
        [](int, void*) { return current->QueryStream(); },
        [](void* from, void* to, std::int64_t* out) { return current->Elapsed(from, to, out); },
        [](std::uint64_t* cursor, Stamp* out) { return current->NextStamp(cursor, out); },
        [](int, char*, std::size_t) { return false; },
        [] {},
        [](int mode) { return std::exchange(current->capture_mode, mode); },
        [](const KernelRef&, void*) -> const char* { return nullptr; },
        nullptr,
        nullptr,
        [](int) { return current->kept_by_pools; },
        [](int) { current->kept_by_pools = current->pools_must_keep; },
        nullptr};
    return &vendor;
  }

  std::function<void()> while_recording;  // what another thread does during the next call that records
  std::function<void()> while_asking;     // the same, during the next call that asks for a time
  bool refuses_to_record = false;
  bool is_idle = false;      // what its streams say when they are asked
  bool keeps_record = true;  // for TakeRecorded
  int capture_mode = 0;      // global, as threads begin
  bool is_relaxed_in_calls = true;
  std::size_t created = 0;
  std::size_t records = 0;
  std::size_t queries = 0;
  std::uint64_t kept_by_pools = 0;
  std::uint64_t pools_must_keep = 0;  // what they do not give back
  std::vector<Stamp> stamps;          // that the runtime has read of timed kernels

 private:
  struct Marker {
    void* stream = nullptr;
    bool is_recorded = false;
    bool is_done = false;
    std::uint64_t time_ns = 0;
    std::optional<Stamp> kernel = std::nullopt;
  };

  void* Create() {
    const std::lock_guard lock(mutex);
    ++created;
    return markers.emplace_back(std::make_unique<Marker>()).get();
  }
  bool Record(void* marker, void* stream) {
    if (while_recording) std::exchange(while_recording, nullptr)();
    const std::lock_guard lock(mutex);
    is_relaxed_in_calls = is_relaxed_in_calls && capture_mode == kCaptureModeRelaxed;
    if (refuses_to_record) return false;
    ++records;
    *static_cast<Marker*>(marker) = Marker{stream, true, false, 0, std::nullopt};
    if (keeps_record) recorded.push_back(marker);
    return true;
  }
  MarkerState Query(void* marker) {
    const std::lock_guard lock(mutex);
    ++queries;
    is_relaxed_in_calls = is_relaxed_in_calls && capture_mode == kCaptureModeRelaxed;
    return static_cast<Marker*>(marker)->is_done ? MarkerState::kDone : MarkerState::kPending;
  }
  MarkerState QueryStream() {
    is_relaxed_in_calls = is_relaxed_in_calls && capture_mode == kCaptureModeRelaxed;
    return is_idle ? MarkerState::kDone : MarkerState::kPending;
  }
  bool NextStamp(std::uint64_t* cursor, Stamp* out) {
    if (*cursor >= stamps.size()) return false;
    *out = stamps[(*cursor)++];
    return true;
  }
  bool Elapsed(void* from, void* to, std::int64_t* out) {
    if (while_asking) std::exchange(while_asking, nullptr)();
    const std::lock_guard lock(mutex);
    auto* first = static_cast<Marker*>(from);
    const auto* last = static_cast<Marker*>(to);
    if (!first->is_done || !last->is_done) return false;
    if (first->kernel) stamps.push_back(*std::exchange(first->kernel, std::nullopt));
    *out = static_cast<std::int64_t>(last->time_ns - first->time_ns);
    return true;
  }

  std::mutex mutex;  // of markers: a device ends work while others ask after it
  std::vector<void*> recorded;
  static inline FakeVendor* current = nullptr;
  std::vector<std::unique_ptr<Marker>> markers;
};

}  // namespace xschedd::shim
