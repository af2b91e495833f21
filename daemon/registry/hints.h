// What a client asks for itself. Thread rule: values.
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
  std::optional<std::uint64_t> deadline_us = {};  // from becoming busy; 0: none any more
  std::optional<std::uint64_t> queue = {};        // whose deadline; not given: of all that have none of their own
};

// Refuses a number that is out of range.
Result<void> Check(const Hints& hints);

}  // namespace xschedd
