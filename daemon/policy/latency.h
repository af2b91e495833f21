// Whether a client may be slowed down by those below it, for their sake: its words in configuration, protocol and
// xschedctl. Thread rule: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace xschedd::policy {

enum class Latency : std::uint8_t {
  kAuto,    // by no more than Settings::tolerance_percent (benefit.h)
  kStrict,  // others are held whenever it is busy
};

inline constexpr std::string_view kLatencyWords = "\"strict\" or \"auto\"";

inline constexpr std::string_view LatencyText(Latency latency) {
  return latency == Latency::kStrict ? "strict" : "auto";
}
inline constexpr std::optional<Latency> LatencyFrom(std::string_view text) {
  if (text == LatencyText(Latency::kStrict)) return Latency::kStrict;
  return text == LatencyText(Latency::kAuto) ? std::optional(Latency::kAuto) : std::nullopt;
}

}  // namespace xschedd::policy
