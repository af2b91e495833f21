// The work of one stream that is not known to have finished, and the point from which its time is measured. Has no
// clock and calls no runtime.
//
//     Launched ──► open ──(Close)──► batch ──(Settle)──► measured by the marker behind it, or by what it costs
//
// Work is settled in the order of its launches. A batch without a marker is measured with the next that has one.
// Thread rule: guarded by its device's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "client-shim/core/launch_mix.h"
#include "client-shim/core/ring_queue.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// From where the next work to be measured is timed.
enum class TimedFrom : std::uint8_t {
  kNowhere,  // unknown
  kMarker,   // a start marker, or the end of what was measured last
  kCost,     // its end less its cost: each of its launches has a reliable cost
};

struct Batch {
  std::uint64_t id = 0;  // grows with each batch
  InFlight work;
  LaunchMix mix;
  void* marker = nullptr;  // null: none, or not recorded yet
  LaunchKey timed = 0;     // the kind of the last launch, if that was timed; else 0
  void* stop = nullptr;    // with a marker: the timed launch's stop event
};

// Settled work with a marker behind it.
struct SettledWork {
  InFlight work;
  LaunchMix mix;
  LaunchKey timed = 0;
  void* stop = nullptr;   // the timed launch's stop event
  void* start = nullptr;  // with kMarker: the start marker; null: timed from the end of the work measured before
  void* marker = nullptr;
  TimedFrom from = TimedFrom::kNowhere;
};

class StreamWork {
 public:
  // All work is settled.
  bool IsIdle() const { return batches_.Empty() && open_.launches == 0; }
  bool HasOpen() const { return open_.launches > 0; }
  // No work is behind the last marker.
  bool IsMarked() const { return !HasOpen() && (batches_.Empty() || batches_.Back().marker != nullptr); }
  // The oldest batch with a marker; null: none.
  const Batch* OldestMarked() const {
    for (std::size_t i = 0; i < batches_.Size(); ++i) {
      if (batches_[i].marker != nullptr) return &batches_[i];
    }
    return nullptr;
  }
  // The cost of all work up to that marker, which must exist.
  std::uint64_t CostToOldestMarkedNs() const {
    std::uint64_t cost_ns = 0;
    for (std::size_t i = 0;; ++i) {
      cost_ns += batches_[i].work.cost_ns;
      if (batches_[i].marker != nullptr) return cost_ns;
    }
  }
  // Whether the open work has each kind in a part of its own, and room for another.
  bool HasRoomForAnotherKind() const { return open_mix_.HasRoom(); }
  // The cost of the work behind the last marker. This may be more than the open work: other calls close batches, too.
  std::uint64_t UnmarkedNs() const { return unmarked_ns_; }
  TimedFrom From() const { return from_; }

  // Adds launches of a kind at the end. `cost_ns`: of each.
  void Launched(LaunchKey key, std::uint64_t cost_ns, std::uint32_t launches = 1) {
    open_.Add(InFlight{launches, launches * cost_ns});
    open_mix_.Add(key, launches);
    unmarked_ns_ += launches * cost_ns;
  }
  // The open work becomes a batch, even an empty one.
  void Close(std::uint64_t id, LaunchKey timed = 0) {
    batches_.Push(Batch{id, open_, open_mix_, nullptr, timed});
    open_ = InFlight{};
    open_mix_ = LaunchMix{};
  }
  // The same, for a marker that is about to be recorded behind it.
  void CloseToMark(std::uint64_t id, LaunchKey timed) {
    Close(id, timed);
    unmarked_ns_ = 0;
  }
  // 0: none.
  std::uint64_t NewestBatch() const { return batches_.Empty() ? 0 : batches_.Back().id; }
  // `marker` was recorded behind that batch, whose last launch got the stop event `stop`, or none. False: the batch has
  // been settled meanwhile, and takes neither.
  bool SetMarker(std::uint64_t id, void* marker, void* stop = nullptr) {
    for (std::size_t i = batches_.Size(); i > 0; --i) {
      if (batches_[i - 1].id != id) continue;
      batches_[i - 1].marker = marker;
      batches_[i - 1].stop = stop;
      return true;
    }
    return false;
  }

  // Sets from where the next work is timed. `start`: with kMarker, the marker.
  void TimeFrom(TimedFrom from, void* start = nullptr) {
    from_ = from;
    start_ = start;
  }
  // The next work begins a new measurement. Returns the start marker if it was not used.
  void* EndTime() {
    from_ = TimedFrom::kNowhere;
    return std::exchange(start_, nullptr);
  }

  bool HasSettledBy(std::uint64_t last) const { return !batches_.Empty() && batches_.Front().id <= last; }
  // Settles all batches up to `last`, and returns their work. Calls measured(SettledWork) for work with a marker behind
  // it, and unmeasured(work, mix, from) for work that will not get one.
  template <typename Measured, typename Unmeasured>
  InFlight Settle(std::uint64_t last, Measured measured, Unmeasured unmeasured) {
    InFlight settled;
    while (HasSettledBy(last)) {
      const Batch batch = batches_.Pop();
      settled.Add(batch.work);
      if (batch.marker == nullptr && from_ == TimedFrom::kCost) {
        unmeasured(batch.work, batch.mix, from_);
        continue;
      }
      carried_.Add(batch.work);
      carried_mix_.Add(batch.mix);
      if (batch.marker == nullptr) continue;
      measured(SettledWork{carried_, carried_mix_, batch.timed, batch.stop, std::exchange(start_, nullptr),
                           batch.marker, from_});
      from_ = TimedFrom::kMarker;
      DropCarried();
    }
    if (!IsIdle()) return settled;
    unmarked_ns_ = 0;
    if (carried_.launches > 0) unmeasured(carried_, carried_mix_, from_);
    DropCarried();
    return settled;
  }

  // Calls change(&work, mix) for all that is not settled.
  template <typename Change>
  void ForEach(Change change) {
    for (std::size_t i = 0; i < batches_.Size(); ++i)
      change(&batches_[i].work, std::as_const(batches_[i].mix));
    change(&open_, std::as_const(open_mix_));
  }
  // Calls give(marker) for each marker and stop event; some may be null.
  template <typename Give>
  void ForEachMarker(Give give) const {
    for (std::size_t i = 0; i < batches_.Size(); ++i)
      for (void* const marker : {batches_[i].marker, batches_[i].stop})
        give(marker);
    give(start_);
  }

 private:
  void DropCarried() {
    carried_ = InFlight{};
    carried_mix_ = LaunchMix{};
  }

  RingQueue<Batch> batches_;  // oldest first
  InFlight open_;             // behind the newest batch
  LaunchMix open_mix_;
  std::uint64_t unmarked_ns_ = 0;
  InFlight carried_;  // settled without a marker, and not measured yet
  LaunchMix carried_mix_;
  void* start_ = nullptr;  // the start marker, until it is measured
  TimedFrom from_ = TimedFrom::kNowhere;
};

}  // namespace xschedd::shim
