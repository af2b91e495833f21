#include "daemon/config/duration.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace xschedd {
namespace {

struct Unit {
  std::string_view name;
  double us;
};
constexpr Unit kUnits[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

// Returns microseconds, as a floating point number so that "1.5ms" works.
Result<double> ParseDuration(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  double value = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value, std::chars_format::fixed);
  if (error == std::errc() && std::isfinite(value) && value >= 0) {  // from_chars also accepts "nan" and "inf"
    const std::string_view unit = Trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
    if (unit.empty() && value == 0) return 0.0;
    for (const Unit& known : kUnits) {
      if (known.name == unit) return value * known.us;
    }
  }
  return Fail("\"" + std::string(text) + "\" is not a duration", "give a number with us, ms, s, min or h, as in 25ms");
}

Result<std::uint32_t> WholeUnits(std::string_view text, double us_per_unit, std::string_view unit) {
  const Result<double> us = ParseDuration(text);
  if (!us) return tl::unexpected<Error>(us.error());
  const double units = *us / us_per_unit;
  if (units > std::numeric_limits<std::uint32_t>::max()) {
    return Fail("\"" + std::string(text) + "\" is too long", "give less than an hour");
  }
  const double rounded = std::round(units);
  if (units - rounded > 1e-6 || rounded - units > 1e-6) {
    return Fail("\"" + std::string(text) + "\" is not a whole number of " + std::string(unit), "round it");
  }
  return static_cast<std::uint32_t>(rounded);
}

}  // namespace

Result<std::uint32_t> ParseMicroseconds(std::string_view text) {
  return WholeUnits(text, 1, "microseconds");
}

Result<std::uint32_t> ParseMilliseconds(std::string_view text) {
  return WholeUnits(text, 1e3, "milliseconds");
}

Result<std::uint32_t> ParseSeconds(std::string_view text) {
  return WholeUnits(text, 1e6, "seconds");
}

}  // namespace xschedd
