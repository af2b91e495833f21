#include "tools/bench/simulate/device.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/policy/types.h"

namespace xschedd::simulate {

std::uint32_t Device::AddContext() {
  contexts_.emplace_back();
  return static_cast<std::uint32_t>(contexts_.size()) - 1;
}

void Device::Enqueue(std::uint32_t context, std::uint32_t lane) {
  Context& own = contexts_[context];
  if (own.length == own.line.size()) {
    std::vector<std::uint32_t> larger(own.line.size() * 2);
    for (std::size_t i = 0; i < own.length; ++i)
      larger[i] = own.line[(own.first + i) & (own.line.size() - 1)];
    own.line.swap(larger);
    own.first = 0;
  }
  own.line[(own.first + own.length++) & (own.line.size() - 1)] = lane;
}

std::uint32_t Device::NextWithWork() const {
  const auto count = static_cast<std::uint32_t>(contexts_.size());
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint32_t next = (current_ + i) % count;
    if (contexts_[next].HasWork()) return next;
  }
  return current_;
}

bool Device::CanStart() const {
  if (contexts_.empty()) return false;
  const Context& own = contexts_[current_];
  return now_ns_ >= ready_ns_ && own.length > 0 && own.running.size() < kind_.side_by_side;
}

void Device::Start(std::uint64_t duration_ns) {
  Context& own = contexts_[current_];
  own.running.push_back({NextLane(), static_cast<double>(duration_ns)});
  own.first = (own.first + 1) & (own.line.size() - 1);
  --own.length;
}

void Device::TakeEnded(std::vector<std::uint32_t>& lanes) {
  lanes.clear();
  if (contexts_.empty()) return;
  std::vector<Kernel>& running = contexts_[current_].running;
  for (const Kernel& kernel : running)
    if (kernel.left_ns < kNothingLeft) lanes.push_back(kernel.lane);
  if (lanes.empty()) return;
  std::erase_if(running, [](const Kernel& kernel) { return kernel.left_ns < kNothingLeft; });
}

std::uint64_t Device::NextNs() const {
  if (contexts_.empty()) return policy::kNever;
  const Context& own = contexts_[current_];
  if (now_ns_ < ready_ns_) return ready_ns_;
  std::uint64_t next = policy::kNever;
  double least = std::numeric_limits<double>::infinity();
  for (const Kernel& kernel : own.running)
    least = std::min(least, kernel.left_ns);
  if (!own.running.empty()) {
    next = now_ns_ + std::max<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(least * Factor() - kNothingLeft)), 1);
  }
  if (contexts_.size() > 1 && own.HasWork() && NextWithWork() != current_) {
    next = std::min(next, std::max(slice_end_ns_, now_ns_ + 1));
  }
  return next;
}

}  // namespace xschedd::simulate
