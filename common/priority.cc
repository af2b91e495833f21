#include "common/priority.h"

#include <charconv>
#include <string>

namespace xschedd {

Result<int> ParsePriority(std::string_view text) {
  // from_chars takes no '+'; people write it.
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = end == digits.data() + digits.size() && !digits.empty();
  if (error == std::errc::invalid_argument || !is_number) {
    return Fail("\"" + std::string(text) + "\" is not a priority", "give a number from -100 to 100");
  }
  if (error == std::errc::result_out_of_range || !IsPriority(value)) {
    return Fail("priority " + std::string(text) + " is out of range", "give a number from -100 to 100");
  }
  return value;
}

}  // namespace xschedd
