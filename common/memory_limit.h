// A limit of device memory, as a person, a rule or a claim gives it. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace xschedd {

// Less is nearly always a forgotten unit ("--memory 24"), and no GPU program runs with it. No device has more.
inline constexpr std::uint64_t kMemoryLimitMin = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMemoryLimitMax = std::uint64_t{1} << 50;

// Fails, and says the range, unless a client can be limited to so many bytes.
Result<void> CheckMemoryLimit(std::uint64_t bytes);
// Bytes, from "24G" (byte_size.h). Out of range is an error, never clamped.
Result<std::uint64_t> ParseMemoryLimit(std::string_view text);

// The most that a client may have where others already have part of a limit that it shares with them: at least one
// byte, since 0 is no limit on a board. `limit` 0: there is none, and 0 is the answer.
constexpr std::uint64_t MemoryAllowance(std::uint64_t limit, std::uint64_t others) {
  if (limit == 0) return 0;
  return others < limit ? limit - others : 1;
}

// The smaller of two limits of which each may be 0, for none.
constexpr std::uint64_t SmallerLimit(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return a + b;
  return a < b ? a : b;
}

}  // namespace xschedd
