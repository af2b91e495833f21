#include "common/bytes_text.h"

#include <cstddef>
#include <cstdio>
#include <iterator>

namespace xschedd {

std::string BytesText(std::uint64_t bytes) {
  constexpr double kStep = 1024;
  constexpr double kFourDigits = 999.5;
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / kStep;
  std::size_t unit = 0;
  for (; value >= kFourDigits && unit + 1 < std::size(kUnits); ++unit)
    value /= kStep;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, kUnits[unit]);
  return text;
}

}  // namespace xschedd
