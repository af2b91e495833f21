// Numbers as people write and read them: durations and counts with units, clock times. Thread rule: pure functions, but
// for ClockTime and DateTime, which read the time zone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd::ctl {

// "250 us", "1.50 ms", "12.3 s", "2 h 05 min": three significant digits, never scientific.
std::string Duration(std::uint64_t nanoseconds);

// "0.2 %" of `whole`; "-" if `whole` is 0.
std::string Share(std::uint64_t part, std::uint64_t whole);

// "14:03:22.123", local time.
std::string ClockTime(std::uint64_t unix_ms);

// "2026-11-25 14:03:22", local time.
std::string DateTime(std::uint64_t unix_ms);

// A plain decimal number: a pid, a uid. Fails on signs, blanks and anything after it. `what` names it in the error.
Result<std::uint64_t> ParseNumber(std::string_view text, std::string_view what, std::uint64_t largest);

// 1 to 10000.
Result<std::uint32_t> ParseWeight(std::string_view text);

// The words of common/latency.h.
Result<std::string> ParseLatency(std::string_view text);

}  // namespace xschedd::ctl
