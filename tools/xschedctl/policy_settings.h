// A setting of the policy at the command line: its option, its help, and its value as people write and read it. Thread
// rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "admin.pb.h"
#include "common/result.h"
#include "daemon/policy/settings.h"

namespace xschedd::ctl {

// "share-slack": the key without its unit.
std::string OptionOf(const policy::SettingRow& row);
// The value's placeholder in a usage: "T", "PERCENT", "N|auto", "off|auto"; words in lower case are typed as they are.
std::string Placeholder(const policy::SettingRow& row);
// The row's help, preceded by its policy if it belongs to one: "share: GPU time by which ...".
std::string HelpOf(const policy::SettingRow& row);

// Parses what SettingText writes.
Result<policy::Value> ParseSetting(const policy::SettingRow& row, const std::string& text);
// "200us", "20ms", "5", "auto".
std::string SettingText(const policy::SettingRow& row, policy::Value value);
// The help for this value, such as "no limit", or else for all values.
std::string MeaningOf(const policy::SettingRow& row, policy::Value value);

// Fails if the daemon did not take a setting: an earlier release ignores one that it does not know, without an error.
Result<void> CheckTaken(const v1::SetPolicyRequest& request, const v1::Policy& answer);

}  // namespace xschedd::ctl
