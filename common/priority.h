// Priority: a number from -100 to 100; larger is more important, the default is 0. Out of range is an error; nothing is
// clamped.
// Thread rule: pure functions.
#pragma once

#include <string_view>

#include "common/result.h"

namespace xschedd {

inline constexpr int kPriorityMin = -100;
inline constexpr int kPriorityMax = 100;
inline constexpr int kPriorityDefault = 0;

constexpr bool IsPriority(long long value) {
  return value >= kPriorityMin && value <= kPriorityMax;
}

// Parses decimal text ("-5", "80"). Fails unless the whole text is a number in range; the error names the range.
Result<int> ParsePriority(std::string_view text);

}  // namespace xschedd
