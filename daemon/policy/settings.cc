#include "daemon/policy/settings.h"

#include <algorithm>
#include <iterator>

namespace xschedd::policy {
namespace {

Error Refused(const SettingRow& row, Value value) {
  const std::string key(row.key);
  if (row.IsLever()) return {key + " is neither \"" + std::string(row.on) + "\" nor \"off\"", "give one of them"};
  return {key + " " + std::to_string(value) + " is out of range",
          "give a number from " + std::to_string(row.min) + " to " + std::to_string(row.max)};
}

}  // namespace

const SettingRow* RowFrom(std::string_view key) {
  const auto* const row =
      std::find_if(std::begin(kSettings), std::end(kSettings), [&](const SettingRow& one) { return one.key == key; });
  return row == std::end(kSettings) ? nullptr : row;
}

Value Get(const SettingRow& row, const Settings& settings) {
  if (const auto* number = std::get_if<std::uint32_t Settings::*>(&row.member)) return settings.**number;
  if (const auto* lever = std::get_if<bool Settings::*>(&row.member)) return settings.**lever ? 1 : 0;
  const std::optional<std::uint32_t>& number = settings.*std::get<std::optional<std::uint32_t> Settings::*>(row.member);
  return number ? Value{*number} : kByVendor;
}

Result<void> Set(const SettingRow& row, Value value, Settings& settings) {
  if (row.MayBeVendors() && value == kByVendor) {
    (settings.*std::get<std::optional<std::uint32_t> Settings::*>(row.member)).reset();
    return {};
  }
  if (value < row.min || value > row.max) return tl::unexpected<Error>(Refused(row, value));
  std::visit([&](auto member) { settings.*member = static_cast<std::uint32_t>(value); }, row.member);
  return {};
}

std::string Text(const SettingRow& row, Value value) {
  if (value == kByVendor) return std::string(kAuto);
  const auto words = row.Words();
  const bool has_word = row.IsLever() && value >= 0 && value < std::ssize(words);
  return has_word ? std::string(words[static_cast<std::size_t>(value)]) : std::to_string(value);
}

Value ValueOfWord(const SettingRow& row, std::string_view word) {
  const auto words = row.Words();
  return std::find(words.begin(), words.end(), word) - words.begin();
}

}  // namespace xschedd::policy
