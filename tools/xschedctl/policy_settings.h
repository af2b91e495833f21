// A setting of the policy at the command line: its option, what it is said to be, and its value as people write and
// read it. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "admin.pb.h"
#include "common/result.h"
#include "daemon/policy/settings.h"

namespace xschedd::ctl {

// "share-slack": the key without its unit.
std::string OptionOf(const policy::SettingRow& row);
// What stands for the value in a usage: "T", "PERCENT", "N|auto", "off|auto"; what is in lower case is to be typed.
std::string Placeholder(const policy::SettingRow& row);
// The row's help, behind the policy that it is for, if it is for one: "share: GPU time by which ...".
std::string HelpOf(const policy::SettingRow& row);

// Takes what SettingText gives.
Result<policy::Value> ParseSetting(const policy::SettingRow& row, const std::string& text);
// "200us", "20ms", "5", "auto".
std::string SettingText(const policy::SettingRow& row, policy::Value value);
// What the help says of this value, "no limit", or of all values.
std::string MeaningOf(const policy::SettingRow& row, policy::Value value);

// A daemon of an earlier release takes no notice of a setting that it does not know, and does not tell it.
Result<void> CheckTaken(const v1::SetPolicyRequest& request, const v1::Policy& answer);

}  // namespace xschedd::ctl
