// A client's latency setting: whether clients below it may slow it down. Its words are the same in the environment, the
// configuration, the protocol and xschedctl. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace xschedd {

enum class Latency : std::uint8_t {
  kAuto,    // they may, by the tolerance (daemon/policy/benefit.h)
  kStrict,  // they are held whenever it is busy
};

inline constexpr std::string_view LatencyText(Latency latency) {
  return latency == Latency::kStrict ? "strict" : "auto";
}
inline constexpr std::optional<Latency> LatencyFrom(std::string_view text) {
  if (text == LatencyText(Latency::kStrict)) return Latency::kStrict;
  return text == LatencyText(Latency::kAuto) ? std::optional(Latency::kAuto) : std::nullopt;
}
// The same, with an error that lists the words.
inline Result<Latency> ParseLatency(std::string_view text) {
  if (const auto latency = LatencyFrom(text)) return *latency;
  return Fail("\"" + std::string(text) + "\" is no latency", "give \"strict\" or \"auto\"");
}

}  // namespace xschedd
