// DeviceTracker's second half: from settled batches to GPU time and to what launches cost.
#include <algorithm>

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {

void DeviceTracker::Settle(const StreamKey& key, StreamState& stream, std::uint64_t last_batch) {
  if (stream.work.HasSettledBy(last_batch)) {
    stream.progress_ns = MonotonicNs();
    ++rooms_;
    if (waiting_ > 0) room_.notify_all();
  }
  const auto measured = [&](const SettledWork& done) { unmeasured_.Push(Measurement{key, done}); };
  const auto unmeasured = [this](const InFlight& work, const LaunchMix& mix, TimedFrom from) {
    gpu_time_.AddUnmeasured(from == TimedFrom::kCost ? work.cost_ns : costs_.SettledCostNs(mix));
  };
  const InFlight settled = stream.work.Settle(last_batch, measured, unmeasured);
  launched_ -= settled.launches;
  RemoveInFlight(stream, settled);
  completed_ += settled.launches;
  stream.activity.completions += settled.launches;
  if (!stream.work.IsIdle() || stream.admitted > 0) return;
  GiveMarker(stream.work.EndTime());  // the gap until the next launch is not ours
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
    GiveMarker(unused);
    GiveMarker(done.start);
    if (epoch == epoch_) Account(measurement, from, to);
  }
  MatchStamps();
  gpu_time_.EndRound();
  is_measuring_ = false;
  unpinned_.notify_all();
}

// What the timed launch that was expected last took; 0: not known yet.
std::uint64_t DeviceTracker::MatchStamps() {
  const auto add = [this](LaunchKey key, std::uint64_t ns) { costs_.AddTimed(key, ns); };
  const std::uint64_t newest_ns = timer_.Match(*vendor_, add);
  if (!timer_.IsUsable()) costs_.GiveUpTiming();
  return newest_ns;
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
  if (done.from == TimedFrom::kCost) {
    const std::uint64_t cost_ns = done.work.cost_ns;
    if (to) {
      gpu_time_.Add(*to - std::min(*to, cost_ns), *to, done.work.launches, cost_ns);
    } else {
      gpu_time_.AddUnmeasured(cost_ns);
    }
    average_.Add(cost_ns, done.work.launches);
    PublishLimit();
    return;
  }
  if (!from || !to || *to <= *from) {
    gpu_time_.AddUnmeasured(costs_.SettledCostNs(done.mix));
    return;
  }
  const std::uint64_t span_ns = *to - *from;
  if (done.work.launches > 0) costs_.AddSpan(done.mix, span_ns, *to);
  std::uint64_t timed_ns = 0;
  if (done.timed != 0) {
    timer_.Expect(done.timed, *to, span_ns);
    timed_ns = MatchStamps();
  }
  // Of a single launch that was timed, what it took is known better than what its kind takes.
  const std::uint64_t cost_ns = timed_ns != 0 && done.work.launches == 1 ? timed_ns : costs_.SettledCostNs(done.mix);
  gpu_time_.Add(*from, *to, done.work.launches, cost_ns);
  average_.Add(cost_ns != 0 ? std::min(cost_ns, span_ns) : span_ns, done.work.launches);
  PublishLimit();
}

// What launches cost has changed a lot: what is in flight is weighed anew, or a kind that has become long would fill
// the window many times over before its first launch has settled.
void DeviceTracker::Reprice() {
  const auto reprice = [&](StreamState& stream, InFlight* work, const LaunchMix& mix) {
    std::uint64_t cost_ns = costs_.SettledCostNs(mix);
    // What is reckoned only counts against the window.
    if (cost_ns == 0) cost_ns = std::max(work->cost_ns, costs_.ReckonedCostNs(mix));
    if (cost_ns == work->cost_ns) return;
    AddInFlight(stream, InFlight{0, cost_ns});
    RemoveInFlight(stream, InFlight{0, work->cost_ns});
    work->cost_ns = cost_ns;
  };
  for (auto& [key, stream] : streams_)
    stream.work.ForEach([&](InFlight* work, const LaunchMix& mix) { reprice(stream, work, mix); });
}

}  // namespace xschedd::shim
