// A configuration as a list of settings, for people and programs: each with its key as the file has it, its value as
// JSON, its unit, and where it comes from. The daemon tells what is in force by it, xschedctl what a file would bring.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/config.h"

namespace xschedd {

// Where a value comes from.
inline constexpr std::string_view kFromDefault = "default";
inline constexpr std::string_view kFromFile = "file";
inline constexpr std::string_view kFromOption = "option";        // --policy, --software-gpu
inline constexpr std::string_view kFromAdmin = "administrator";  // xschedctl policy set

struct Setting {
  std::string key;            // "policy.linger_us", "passthrough", "rule.0", "ceiling.0"
  std::string value;          // JSON; a rule and a ceiling: an object with the keys of the file
  std::string default_value;  // JSON; null for rules and ceilings: there is none
  std::string_view source = kFromDefault;
  FilePlace place = {};        // where the value is from a file
  std::string_view note = {};  // of a rule: whether it can raise
};

// What everybody has, then rules and ceilings as in the files. Sources are kFromDefault and kFromFile.
std::vector<Setting> Describe(const Config& config);

// The same for a daemon's: `option` says that the policy's name was given with --policy, `software_gpu` that
// --software-gpu was, `file` what the policy was before an administrator changed it.
std::vector<Setting> DescribeLive(const Config& config, const policy::Settings& file, bool option,
                                  bool software_gpu = false);

}  // namespace xschedd
