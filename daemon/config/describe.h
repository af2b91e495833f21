// Describes a configuration as a list of settings, for people and programs: each with its key as in the file, its value
// as JSON, and its source. The daemon reports what is in force with it, xschedctl what a file would set. Thread rule:
// pure functions.
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
  std::string value;          // JSON; for a rule or ceiling an object with the keys of the file
  std::string default_value;  // JSON; null for rules and ceilings, which have none
  std::string_view source = kFromDefault;
  FilePlace place = {};        // set if the value is from a file
  std::string_view note = {};  // for a rule: whether it can raise
};

// General settings, then rules and ceilings in file order. Sources are kFromDefault and kFromFile.
std::vector<Setting> Describe(const Config& config);

// The same for a running daemon. `file`: the policy of the files, before an administrator changed it. `option`:
// --policy gave the policy's name. `software_gpu`: --software-gpu was given.
std::vector<Setting> DescribeLive(const Config& config, const policy::Settings& file, bool option,
                                  bool software_gpu = false);

}  // namespace xschedd
