// The unit of a setting, from the end of its key. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace xschedd {

// "us", "ms", "ms/s", "%", "KiB", "KiB/s", "1/s"; empty: not a number, or a plain count.
std::string_view UnitOf(std::string_view key);
// "share_slack" for "share_slack_us".
std::string_view WithoutUnit(std::string_view key);

// Parses a duration in the key's unit (config/duration.h). Null: the key is not a time.
using ParseTime = Result<std::uint32_t> (*)(std::string_view text);
ParseTime ParseTimeOf(std::string_view key);

}  // namespace xschedd
