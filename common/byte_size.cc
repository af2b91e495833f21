#include "common/byte_size.h"

#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace xschedd {
namespace {

constexpr std::string_view kUnits = "KMGT";

// How many bits a suffix shifts by; none for a text that is no suffix.
std::optional<int> Shift(std::string_view suffix) {
  if (suffix.empty()) return 0;
  const std::size_t unit = kUnits.find(suffix[0] >= 'a' && suffix[0] <= 'z' ? suffix[0] - 'a' + 'A' : suffix[0]);
  if (unit == std::string_view::npos) return std::nullopt;
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "i" && rest != "iB") return std::nullopt;
  return 10 * (static_cast<int>(unit) + 1);
}

}  // namespace

Result<std::uint64_t> ParseByteSize(std::string_view text) {
  constexpr const char* kRemedy = "give bytes, or a whole number with K, M, G or T (1024 each), such as 24G";
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::optional<int> shift = Shift({rest, static_cast<std::size_t>(end - rest)});
  if (error == std::errc::invalid_argument || !shift) {
    return Fail("\"" + std::string(text) + "\" is not a size of memory", kRemedy);
  }
  if (error == std::errc::result_out_of_range || number > std::numeric_limits<std::uint64_t>::max() >> *shift) {
    return Fail("the size of memory \"" + std::string(text) + "\" is too large", kRemedy);
  }
  return number << *shift;
}

std::string ByteSizeText(std::uint64_t bytes) {
  std::string unit;
  for (const char next : kUnits) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = next;
  }
  return std::to_string(bytes) + unit;
}

}  // namespace xschedd
