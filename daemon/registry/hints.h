// What a client asks for. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>

#include "common/latency.h"
#include "common/result.h"

namespace xschedd {

struct Hints {
  std::optional<int> priority = {};
  std::optional<std::uint32_t> weight = {};
  std::optional<Latency> latency = {};
  std::optional<std::uint64_t> deadline_us = {};  // counted from becoming busy; 0: removes it
  std::optional<std::uint64_t> queue = {};        // that the deadline is for; none: all queues without their own
};

// Refuses a number that is out of range.
Result<void> Check(const Hints& hints);

}  // namespace xschedd
