#include "tools/xschedctl/units.h"

#include <fmt/format.h>
#include <time.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "common/latency.h"

namespace xschedd::ctl {
namespace {

// Three significant digits of a value below 1000.
std::string Digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

// Microseconds as a floating point number, so that "1.5ms" can be written.
Result<double> ParseDuration(std::string_view text) {
  const auto fail = [&] {
    return Fail("\"" + std::string(text) + "\" is not a duration", "give a number with us, ms or s, as in 25ms");
  };
  const std::string_view trimmed = Trim(text);
  double value = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return fail();  // "nan" and "inf" are read, too
  const std::string_view unit = Trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
  if (unit.empty() && value == 0) return 0.0;
  if (unit == "us") return value;
  if (unit == "ms") return value * 1e3;
  if (unit == "s") return value * 1e6;
  return fail();
}

Result<std::uint32_t> WholeUnits(std::string_view text, double microseconds_per_unit, std::string_view unit) {
  const Result<double> microseconds = ParseDuration(text);
  if (!microseconds) return tl::unexpected<Error>(microseconds.error());
  const double units = *microseconds / microseconds_per_unit;
  if (units > std::numeric_limits<std::uint32_t>::max()) {
    return Fail("\"" + std::string(text) + "\" is too long", "give less than an hour");
  }
  const double rounded = std::round(units);
  if (units - rounded > 1e-6 || rounded - units > 1e-6) {
    return Fail("\"" + std::string(text) + "\" is no whole number of " + std::string(unit), "round it");
  }
  return static_cast<std::uint32_t>(rounded);
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

std::string Share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string ClockTime(std::uint64_t unix_ms) {
  const auto seconds = static_cast<time_t>(unix_ms / 1000);
  tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec, unix_ms % 1000);
}

Result<std::uint32_t> ParseMicroseconds(std::string_view text) {
  return WholeUnits(text, 1, "microseconds");
}

Result<std::uint32_t> ParseMilliseconds(std::string_view text) {
  return WholeUnits(text, 1e3, "milliseconds");
}

Result<std::uint64_t> ParseNumber(std::string_view text, std::string_view what, std::uint64_t largest) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > largest) {
    return Fail("\"" + std::string(text) + "\" is not a " + std::string(what),
                fmt::format("give a number from 0 to {}", largest));
  }
  return value;
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
