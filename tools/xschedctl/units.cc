#include "tools/xschedctl/units.h"

#include <fmt/format.h>
#include <time.h>

#include "common/latency.h"
#include "common/parse_number.h"

namespace xschedd::ctl {
namespace {

// Three significant digits of a value below 1000.
std::string Digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

tm LocalTime(std::uint64_t unix_ms) {
  const auto seconds = static_cast<time_t>(unix_ms / 1000);
  tm local{};
  localtime_r(&seconds, &local);
  return local;
}

}  // namespace

std::string Duration(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds == 0) return "0 s";
  if (nanoseconds < 1000) return fmt::format("{} ns", nanoseconds);
  if (value < 999.5e3) return Digits(value / 1e3) + " us";
  if (value < 999.5e6) return Digits(value / 1e6) + " ms";
  if (value < 59.95e9) return Digits(value / 1e9) + " s";
  const std::uint64_t seconds = (nanoseconds + 500'000'000) / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string Count(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string ClockTime(std::uint64_t unix_ms) {
  const tm local = LocalTime(unix_ms);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec, unix_ms % 1000);
}

std::string DateTime(std::uint64_t unix_ms) {
  const tm local = LocalTime(unix_ms);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min, local.tm_sec);
}

Result<std::uint64_t> ParseNumber(std::string_view text, std::string_view what, std::uint64_t largest) {
  const auto value = xschedd::ParseNumber<std::uint64_t>(text);
  if (!value || *value > largest) {
    return Fail("\"" + std::string(text) + "\" is not a " + std::string(what),
                fmt::format("give a number from 0 to {}", largest));
  }
  return *value;
}

Result<std::uint32_t> ParseWeight(std::string_view text) {
  constexpr std::uint64_t kLargest = 10'000;  // the daemon's limits
  const auto weight = ParseNumber(text, "weight", kLargest);
  if (!weight || *weight == 0) {
    return Fail("\"" + std::string(text) + "\" is not a weight", "give a number from 1 to 10000");
  }
  return static_cast<std::uint32_t>(*weight);
}

Result<std::string> ParseLatency(std::string_view text) {
  const auto latency = xschedd::ParseLatency(text);
  if (!latency) return Fail(latency.error().what, "give --latency strict or --latency auto");
  return std::string(LatencyText(*latency));
}

}  // namespace xschedd::ctl
