// A device and its queue of kernels.
//
//   contexts    side by side: one, which all clients share; with time slices: each client has its own
//   in one      the streams' first kernels run in order of arrival, at most `side_by_side` at a time, and a stream
//               whose kernel has ended gets in line again: streams take turns, whichever clients they belong to
//   of several  one has the device until its slice is over and another has work, or until it has none and another
//               has. The switch takes `switch_ns`. Interrupted kernels continue when their context is back
//
// Nothing else stops a kernel. Thread rule: belongs to one simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

class Device {
 public:
  explicit Device(const DeviceKind& kind) : kind_(kind) {}

  // The context of another client.
  std::uint32_t AddContext();

  // Advances the clock to `now_ns`; calls `ran` with the lane of each kernel that ran meanwhile. Call it before any
  // change.
  template <typename Ran>
  void Advance(std::uint64_t now_ns, Ran ran);

  // A kernel of the lane's gets in line.
  void Enqueue(std::uint32_t context, std::uint32_t lane);

  // Chooses the context that has the device; `slice_of(lane)` gives the length of a slice that begins.
  template <typename SliceOf>
  void Choose(SliceOf slice_of);
  // After Choose: whether a kernel can start; NextLane is its lane.
  bool CanStart() const;
  std::uint32_t NextLane() const { return contexts_[current_].line[contexts_[current_].first]; }
  void Start(std::uint64_t duration_ns);

  // Removes the kernels that have ended; returns their lanes in the order in which they began.
  void TakeEnded(std::vector<std::uint32_t>& lanes);

  // When something happens next without a change from outside; kNever: nothing does.
  std::uint64_t NextNs() const;

  std::uint64_t BusyNs() const { return busy_ns_; }  // time with at least one kernel running
  std::uint64_t Switches() const { return switches_; }

 private:
  struct Kernel {
    std::uint32_t lane;
    double left_ns;  // alone
  };
  struct Context {
    std::vector<std::uint32_t> line = std::vector<std::uint32_t>(16);  // a ring; its size is a power of two
    std::size_t first = 0;
    std::size_t length = 0;
    std::vector<Kernel> running;  // or standing still

    bool HasWork() const { return length > 0 || !running.empty(); }
    std::uint32_t AnyLane() const { return running.empty() ? line[first] : running.front().lane; }
  };

  static constexpr double kNothingLeft = 1e-3;  // ns: below this a kernel has ended (rounding)

  std::uint32_t NextWithWork() const;  // current_ if no other has
  // The factor by which a kernel is slower than alone.
  double Factor() const { return 1 + kind_.slower * (static_cast<double>(contexts_[current_].running.size()) - 1); }

  DeviceKind kind_;
  std::vector<Context> contexts_;
  std::uint32_t current_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t ready_ns_ = 0;  // the change of contexts is over
  std::uint64_t slice_ns_ = 0;
  std::uint64_t slice_end_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t switches_ = 0;
};

template <typename Ran>
void Device::Advance(std::uint64_t now_ns, Ran ran) {
  if (now_ns == now_ns_ || contexts_.empty()) return;
  const std::uint64_t from_ns = std::max(now_ns_, std::min(ready_ns_, now_ns));
  now_ns_ = now_ns;
  Context& own = contexts_[current_];
  if (own.running.empty() || from_ns == now_ns) return;
  const double done = static_cast<double>(now_ns - from_ns) / Factor();
  for (Kernel& kernel : own.running) {
    kernel.left_ns -= done;
    ran(kernel.lane, from_ns);
  }
  busy_ns_ += now_ns - from_ns;
}

template <typename SliceOf>
void Device::Choose(SliceOf slice_of) {
  if (kind_.slice_ns == 0 || now_ns_ < ready_ns_) return;
  const std::uint32_t next = NextWithWork();
  const bool own = contexts_[current_].HasWork();
  if (next != current_ && (!own || now_ns_ >= slice_end_ns_)) {
    current_ = next;
    ++switches_;
    ready_ns_ = now_ns_ + kind_.switch_ns;
    slice_ns_ = slice_of(contexts_[current_].AnyLane());
    slice_end_ns_ = ready_ns_ + slice_ns_;
  } else if (own && now_ns_ >= slice_end_ns_) {
    // No other context wanted the device when the slice ended, so the next slice began at once.
    slice_ns_ = slice_of(contexts_[current_].AnyLane());
    if (slice_ns_ != 0) slice_end_ns_ = now_ns_ + slice_ns_ - (now_ns_ - slice_end_ns_) % slice_ns_;
  }
}

}  // namespace xschedd::simulate
