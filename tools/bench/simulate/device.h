// A device's queue of kernels: the streams' first kernels run in order of arrival, at most `side_by_side` at a time,
// and a stream whose kernel has ended gets in line again: streams take turns, whichever clients they belong to. A
// kernel that runs is never stopped. Thread rule: belongs to one simulation.
#pragma once

#include <cstdint>
#include <vector>

namespace xschedd::simulate {

class Device {
 public:
  explicit Device(std::uint32_t side_by_side) : side_by_side_(side_by_side), line_(16) {}

  void Enqueue(std::uint32_t lane) {
    if (length_ == line_.size()) Grow();
    line_[(first_ + length_++) & (line_.size() - 1)] = lane;
  }

  // Whether a kernel can start; then Start says whose.
  bool CanStart() const { return running_ < side_by_side_ && length_ > 0; }
  std::uint32_t Start(std::uint64_t now_ns) {
    const std::uint32_t lane = line_[first_];
    first_ = (first_ + 1) & (line_.size() - 1);
    --length_;
    if (running_++ == 0) busy_since_ns_ = now_ns;
    return lane;
  }
  void End(std::uint64_t now_ns) {
    if (--running_ == 0) busy_ns_ += now_ns - busy_since_ns_;
  }

  // Time with at least one kernel running.
  std::uint64_t BusyNs(std::uint64_t now_ns) const { return busy_ns_ + (running_ > 0 ? now_ns - busy_since_ns_ : 0); }

 private:
  void Grow() {
    std::vector<std::uint32_t> larger(line_.size() * 2);
    for (std::size_t i = 0; i < length_; ++i)
      larger[i] = line_[(first_ + i) & (line_.size() - 1)];
    line_.swap(larger);
    first_ = 0;
  }

  std::uint32_t side_by_side_;
  std::uint32_t running_ = 0;
  std::uint64_t busy_since_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::vector<std::uint32_t> line_;  // a ring; its size is a power of two
  std::size_t first_ = 0;
  std::size_t length_ = 0;
};

}  // namespace xschedd::simulate
