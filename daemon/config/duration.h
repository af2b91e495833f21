// Durations as people write them ("500us", "25 ms", "1.5s", "2min", "1h"), for the configuration and the command line.
// Only zero may lack a unit: a bare number sets 25 us where 25 ms was meant. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace xschedd {

// Each fails if the text is not a whole number of its unit ("500us" in milliseconds) or exceeds 32 bits.
Result<std::uint32_t> ParseMicroseconds(std::string_view text);
Result<std::uint32_t> ParseMilliseconds(std::string_view text);
Result<std::uint32_t> ParseSeconds(std::string_view text);

}  // namespace xschedd
