#include "tools/xschedctl/policy_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "daemon/config/key_units.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {

std::string OptionOf(const policy::SettingRow& row) {
  std::string option(WithoutUnit(row.key));
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::string Placeholder(const policy::SettingRow& row) {
  if (row.IsLever()) return fmt::format("{}", fmt::join(row.Words(), "|"));
  if (ParseTimeOf(row.key) != nullptr) return "T";
  if (UnitOf(row.key) == "%") return "PERCENT";
  return row.MayBeVendors() ? fmt::format("N|{}", policy::kAuto) : "N";
}

std::string HelpOf(const policy::SettingRow& row) {
  return policy::NameFrom(row.owner) ? fmt::format("{}: {}", row.owner, row.help) : std::string(row.help);
}

Result<policy::Value> ParseSetting(const policy::SettingRow& row, const std::string& text) {
  // "vendor": its name in 0.1.0.
  if (row.MayBeVendors() && (text == policy::kAuto || text == "vendor")) return policy::kByVendor;
  if (row.IsLever()) {
    policy::Settings settings;
    const policy::Value value = policy::ValueOfWord(row, text);
    if (Result<void> known = policy::Set(row, value, settings); !known) return tl::unexpected<Error>(known.error());
    return value;
  }
  if (const ParseTime parse = ParseTimeOf(row.key)) {
    const Result<std::uint32_t> time = parse(text);
    if (!time) return tl::unexpected<Error>(time.error());
    return policy::Value{*time};
  }
  const std::string_view what = row.MayBeVendors() ? "number, nor \"auto\"" : "number";
  const auto number = ParseNumber(text, what, std::numeric_limits<std::uint32_t>::max());
  if (!number) return tl::unexpected<Error>(number.error());
  return static_cast<policy::Value>(*number);
}

std::string SettingText(const policy::SettingRow& row, policy::Value value) {
  if (ParseTimeOf(row.key) == nullptr || value <= 0) return policy::Text(row, value);
  if (UnitOf(row.key) != "us") return fmt::format("{}ms", value);
  return value % 1000 == 0 ? fmt::format("{}ms", value / 1000) : fmt::format("{}us", value);
}

std::string MeaningOf(const policy::SettingRow& row, policy::Value value) {
  const std::string help = HelpOf(row);
  const std::string end = "; ";
  // Semicolons separate the parts of a help; a part that begins with a value describes that value.
  const std::string about = policy::Text(row, value) + ": ";
  const std::size_t found = help.starts_with(about) ? 0 : help.find(end + about);
  if (found == std::string::npos) return help.substr(0, help.find(end));
  const std::size_t begin = help.find(about, found) + about.size();
  return help.substr(begin, help.find(end, begin) - begin);
}

Result<void> CheckTaken(const v1::SetPolicyRequest& request, const v1::Policy& answer) {
  for (const auto& [key, value] : request.settings()) {
    if (answer.settings().contains(key)) continue;
    const std::string rest = request.dry_run() ? "" : " (the other settings are in force)";
    return Fail(fmt::format("this daemon's release does not know {}{}", key, rest),
                "restart it, so that the installed release runs");
  }
  return {};
}

}  // namespace xschedd::ctl
