// Scheduling of the client's streams against each other (stream_order.h, stream_gate.h). The trackers know what work
// the streams have; so while streams are ordered, every launch counts, whether or not there is a daemon that asks for
// it.
#include <algorithm>

#include "client-shim/core/client.h"

namespace xschedd::shim {
namespace {

// The window of streams below others: small, so that their work hardly delays more important streams. The size is the
// default of the daemon's window_us.
constexpr Window kStreamWindow{500, 2, false};

class TrackedWork : public StreamLoads {
 public:
  explicit TrackedWork(DeviceTracker* tracker) : tracker_(tracker) {}
  std::uint64_t BindsUntilNs(const StreamOrder& order, int priority) const override {
    std::uint64_t until = 0;
    tracker_->ForEachStream([&](void* stream, const InFlight& in_flight, std::uint64_t progress_ns) {
      const StreamLoad load{order.Of(stream), in_flight.launches > 0, in_flight.cost_ns, progress_ns};
      if (load.priority > priority) until = std::max(until, shim::BindsUntilNs(load));
    });
    return until;
  }
  void Poll(std::uint64_t nap_ns) override { tracker_->PollForRoom(nap_ns); }

 private:
  DeviceTracker* const tracker_;
};

}  // namespace

int Client::ScheduleStreams(bool on) {
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  schedules_streams_.store(on, std::memory_order_relaxed);
  OrderStreams();
  return XSCHEDD_OK;
}

// After any change of streams or of their priorities. Costs two loads where streams are not scheduled.
void Client::OrderStreams() {
  if (!schedules_streams_.load(std::memory_order_relaxed) && !stream_gate_.IsOn()) return;
  {
    const std::lock_guard lock(order_mutex_);
    std::unordered_map<void*, int> priorities;
    if (schedules_streams_.load(std::memory_order_relaxed)) {
      priorities = requests_.Priority().OfStreams();
      // Keeps what the program has set by the C API.
      for (const auto& [stream, info] : streams_.All())
        priorities.try_emplace(stream, StreamPriorityFrom(info.priority));
    }
    stream_gate_.Set(StreamOrder(std::move(priorities)));
  }
  PointSummary();
}

// Before the client is busy: a launch that waits for a stream of its own process must not hold others.
void Client::WaitForStreams(const Submission& submission) {
  void* const stream = CanonicalStream(submission.stream);
  if (!stream_gate_.MayWait(stream) || NeverWaits(submission)) return;
  const int device = DeviceOf(submission.stream);
  if (!IsDevice(device)) return;
  DeviceTracker* const tracker = trackers_.Existing(device);
  if (tracker == nullptr) return;  // nothing was submitted yet
  TrackedWork work(tracker);
  stream_gate_.Wait(device, stream, &work);
}

Window Client::WindowFor(const Session* session, std::uint32_t slot, std::uint32_t word, void* stream) const {
  const Window window = session != nullptr ? WindowOf(*session, slot, word) : Window{};
  const bool is_smaller = window.us != 0 && window.us <= kStreamWindow.us;
  if (is_smaller || !stream_gate_.IsOn() || !stream_gate_.MayWait(CanonicalStream(stream))) return window;
  return Window{kStreamWindow.us, kStreamWindow.floor, window.is_guarded};
}

}  // namespace xschedd::shim
