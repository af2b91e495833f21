#include "client-shim/core/trackers.h"

#include <algorithm>

namespace xschedd::shim {
namespace {

bool IsNonBlocking(unsigned stream_flags) {
  return (stream_flags & 1) != 0;  // hipStreamNonBlocking, CU_STREAM_NON_BLOCKING
}

}  // namespace

std::uint64_t QueueId(const StreamKey& key) {
  // The per-thread default streams share one handle, so the thread's number is part of the id.
  return key.thread != 0 ? (key.thread << 8) | kPerThreadHandle : reinterpret_cast<std::uintptr_t>(key.handle);
}

DeviceTracker* Trackers::Make(int device) {
  auto& entry = trackers_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(mutex_);
  // relaxed: written under this lock.
  if (DeviceTracker* const tracker = entry.load(std::memory_order_relaxed)) return tracker;
  auto* const tracker = new DeviceTracker(device, vendor_, captures_, deadlines_);
  for (const auto& [stream, info] : streams_->All()) {
    if (info.device == device) tracker->NoteStream(stream, IsNonBlocking(info.flags));
  }
  tracker->Reset(session_ != nullptr ? session_->Sink(static_cast<std::uint32_t>(device)) : nullptr);
  entry.store(tracker, std::memory_order_release);  // release: whoever sees the tracker sees it complete
  return tracker;
}

void Trackers::Begin(Session* session) {
  const std::lock_guard lock(mutex_);
  session_ = session;
  ForEach([session](std::uint32_t slot, DeviceTracker& tracker) {
    tracker.Reset(session != nullptr ? session->Sink(slot) : nullptr);
  });
}

void Trackers::NoteStream(int device, void* stream, unsigned flags) {
  // Under the lock of Make: a tracker either finds the stream in the table, or is notified here.
  const std::lock_guard lock(mutex_);
  if (DeviceTracker* const tracker = Existing(device)) tracker->NoteStream(stream, IsNonBlocking(flags));
}

bool Trackers::HasOwnMarkers(std::uint64_t now_ns) const {
  bool has = false;
  ForEach([&](std::uint32_t, DeviceTracker& tracker) { has = has || tracker.HasOwnMarkers(now_ns); });
  return has;
}

std::uint64_t Trackers::Tick(std::uint64_t now_ns, const Session* session) const {
  std::uint64_t result = DeviceTracker::kNever;
  ForEach([&](std::uint32_t slot, DeviceTracker& tracker) {
    const bool is_awaited = session != nullptr && (session->Board().Word(slot) & abi::kAwaited) != 0;
    result = std::min(result, tracker.Tick(now_ns, is_awaited));
  });
  return result;
}

void Trackers::TakeActivity(ActivityMessage* message) const {
  ForEach([message](std::uint32_t slot, DeviceTracker& tracker) {
    for (const Activity& activity : tracker.TakeActivity())
      message->queues.push_back({QueueId(activity.stream), slot, activity.launches, activity.completions});
  });
}

}  // namespace xschedd::shim
