#include "client-shim/core/measuring.h"

namespace xschedd::shim {

void Measuring::UnlockToMeasure(std::unique_lock<std::mutex>& lock) {
  if (is_under_way_) return;
  is_under_way_ = true;
  const bool may_ask = !captures_->AreCallsForbidden();
  while (!waiting_.Empty()) {
    const Measurement measurement = waiting_.Pop();
    const std::uint64_t drops = drops_;
    Times times{std::nullopt, std::nullopt, measurement.done.marker};
    if (may_ask) {
      lock.unlock();
      times = Ask(measurement.done);
      lock.lock();
    }
    markers_->Give(times.unused);
    markers_->Give(measurement.done.start);
    markers_->Give(measurement.done.stop);
    if (drops == drops_) Account(measurement, times.from, times.to);
  }
  times_->EndRound();
  is_under_way_ = false;
}

Measuring::Times Measuring::Ask(const SettledWork& done) {
  const RelaxedThread relaxed(*vendor_);
  Times times{std::nullopt, clock_.TimeOf(done.marker), done.marker};
  if (clock_.WantsOrigin(times.to)) {
    times.unused = clock_.MoveOrigin(done.marker, times.to);
    times.to = clock_.TimeOf(done.marker);
  }
  if (done.start != nullptr) times.from = clock_.TimeOf(done.start);
  // Makes the runtime read the kernel's stamp (hip/kernel_stamps.h).
  std::int64_t unused = 0;
  if (done.stop != nullptr) vendor_->elapsed_ns(done.stop, done.marker, &unused);
  return times;
}

void Measuring::Account(const Measurement& measurement, std::optional<std::uint64_t> from,
                        std::optional<std::uint64_t> to) {
  const SettledWork& done = measurement.done;
  if (TrackedStream* const stream = streams_->Known(measurement.stream)) {
    if (done.start == nullptr && done.from == TimedFrom::kMarker && stream->end_ns != 0) from = stream->end_ns;
    stream->end_ns = to.value_or(0);
  }
  times_->Account(done, from, to);
}

void Measuring::Drop() {
  for (std::size_t i = 0; i < waiting_.Size(); ++i) {
    markers_->Give(waiting_[i].done.start);
    markers_->Give(waiting_[i].done.stop);
    markers_->Give(waiting_[i].done.marker);
  }
  waiting_.Clear();
  ++drops_;
}

void Measuring::ForgetMarkers() {
  waiting_.Clear();
  clock_.Forget();
  ++drops_;
}

}  // namespace xschedd::shim
