// DeviceTracker's second half: settles batches, and asks their markers for the times that device_times.h makes GPU time
// and costs of.
#include <algorithm>

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {

void DeviceTracker::Settle(const StreamKey& key, StreamState& stream, std::uint64_t last_batch) {
  if (stream.work.HasSettledBy(last_batch)) {
    stream.progress_ns = MonotonicNs();
    room_waiters_.MoreRoom();
  }
  const auto measured = [&](const SettledWork& done) { unmeasured_.Push(Measurement{key, done}); };
  const auto unmeasured = [this](const InFlight& work, const LaunchMix& mix, TimedFrom from) {
    times_.AccountUnmeasured(work, mix, from);
  };
  const InFlight settled = stream.work.Settle(last_batch, measured, unmeasured);
  launched_ -= settled.launches;
  RemoveInFlight(stream, settled);
  completed_ += settled.launches;
  stream.activity.completions += settled.launches;
  if (!stream.work.IsIdle() || stream.admitted > 0) return;
  markers_.Give(stream.work.EndTime());  // the gap until the next launch is not ours
  stream.busy_since_ns = 0;
}

void DeviceTracker::UnlockToMeasure(Lock& lock) {
  if (is_measuring_) return;
  is_measuring_ = true;
  const bool may_ask = !captures_->Forbid();
  while (!unmeasured_.Empty()) {
    const Measurement measurement = unmeasured_.Pop();
    const SettledWork& done = measurement.done;
    const std::uint64_t epoch = epoch_;
    lock.unlock();
    // Both are done, so this does not block.
    std::optional<std::uint64_t> from, to;
    void* unused = nullptr;
    if (may_ask) {
      const RelaxedThread relaxed(*vendor_);
      to = clock_.TimeOf(done.marker);
      if (done.start != nullptr) from = clock_.TimeOf(done.start);
      if (clock_.WantsOrigin(to)) {
        const bool is_first = !to;
        unused = clock_.MoveOrigin(done.marker, to);
        if (is_first) {
          to = clock_.TimeOf(done.marker);
          if (done.start != nullptr) from = clock_.TimeOf(done.start);
        }
      } else {
        unused = done.marker;
      }
    } else {
      unused = done.marker;
    }
    lock.lock();
    markers_.Give(unused);
    markers_.Give(done.start);
    if (epoch == epoch_) Account(measurement, from, to);
  }
  times_.EndRound();
  is_measuring_ = false;
  unpinned_.notify_all();
}

void DeviceTracker::Account(const Measurement& measurement, std::optional<std::uint64_t> from,
                            std::optional<std::uint64_t> to) {
  const SettledWork& done = measurement.done;
  const auto stream = streams_.find(measurement.stream);
  if (done.start == nullptr && done.from == TimedFrom::kMarker && stream != streams_.end() &&
      stream->second.end_ns != 0) {
    from = stream->second.end_ns;
  }
  if (stream != streams_.end()) stream->second.end_ns = to.value_or(0);
  times_.Account(done, from, to);
  PublishLimit();
}

// What launches cost has changed a lot: what is in flight is weighed anew, or a kind that has become long would fill
// the window many times over before its first launch has settled.
void DeviceTracker::Reprice() {
  const auto reprice = [&](StreamState& stream, InFlight* work, const LaunchMix& mix) {
    std::uint64_t cost_ns = times_.Costs().SettledCostNs(mix);
    // What is reckoned only counts against the window.
    if (cost_ns == 0) cost_ns = std::max(work->cost_ns, times_.Costs().ReckonedCostNs(mix));
    if (cost_ns == work->cost_ns) return;
    AddInFlight(stream, InFlight{0, cost_ns});
    RemoveInFlight(stream, InFlight{0, work->cost_ns});
    work->cost_ns = cost_ns;
  };
  for (auto& entry : streams_)
    entry.second.work.ForEach([&](InFlight* work, const LaunchMix& mix) { reprice(entry.second, work, mix); });
}

}  // namespace xschedd::shim
