// The daemon's configuration: a TOML file over defaults that need no file. daemon/xschedd.toml documents every key.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/priority.h"
#include "common/result.h"
#include "daemon/policy/types.h"

namespace xschedd {

// Gives clients that fit all that is set a priority. The first rule that fits counts.
struct Rule {
  std::optional<std::uint32_t> uid;
  std::optional<std::string> exe;
  std::optional<std::string> cgroup;
  std::optional<std::string> group;
  int priority = kPriorityDefault;
};

struct Quota {
  std::uint32_t connections_per_uid = 2048;
  std::uint32_t queues_per_client = 4096;
};

struct Config {
  std::uint32_t lease_ms = 100;
  std::uint32_t activity_interval_ms = 1000;
  policy::Settings policy;
  std::vector<Rule> rules;
  std::map<std::uint32_t, int> ceilings;  // by uid
  int default_ceiling = kPriorityMax;     // for every other uid
  Quota quota;
  std::vector<std::string> passthrough;

  int CeilingOf(std::uint32_t uid) const {
    const auto found = ceilings.find(uid);
    return found == ceilings.end() ? default_ceiling : found->second;
  }
};

// Fails on the first thing that is not understood, with "file:line:column", the cause and a remedy. `name` is the file
// as the message should call it.
Result<Config> ParseConfig(std::string_view text, const std::string& name);

// Reads and parses `path`. A file that does not exist is an error unless `may_be_absent`, which gives the defaults.
Result<Config> LoadConfig(const std::string& path, bool may_be_absent);

}  // namespace xschedd
