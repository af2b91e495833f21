// A client of the simulation: its requests, and its progress. Thread rule: one user at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/bench/simulate/arrival_source.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

// Arrivals that wait for their client, first in first out.
class Backlog {
 public:
  bool IsEmpty() const { return first_ == times_.size(); }
  void Add(std::uint64_t time_ns) {
    // Drops served entries from time to time, so that memory is bounded by the longest backlog.
    if (first_ > 64 && first_ * 2 > times_.size()) {
      times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    times_.push_back(time_ns);
  }
  std::uint64_t Take() { return times_[first_++]; }

 private:
  std::vector<std::uint64_t> times_;
  std::size_t first_ = 0;
};

struct Client {
  const ClientSpec* spec = nullptr;
  std::uint32_t class_index = 0;
  std::uint32_t first_lane = 0;
  std::uint32_t barrier = 0;  // index into barriers_, if spec->barrier
  ArrivalSource source;
  Backlog backlog;
  std::uint64_t begun = 0;  // requests begun
  bool is_serving = false;
  std::uint64_t arrival_ns = 0;  // of the request that is served
  std::uint32_t lanes_left = 0;  // of that request
};

// Ranks that wait for each other.
struct Barrier {
  std::vector<std::uint32_t> members;  // clients
  std::uint32_t waiting = 0;
};

}  // namespace xschedd::simulate
