// The daemon's configuration: TOML files over built-in defaults. daemon/xschedd.toml documents every key; files.h says
// which files are read. Thread rule: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/latency.h"
#include "common/priority.h"
#include "common/result.h"
#include "daemon/config/listen_address.h"
#include "daemon/policy/types.h"

namespace xschedd {

// A place in a file.
struct FilePlace {
  std::string file;
  std::uint32_t line = 0;
  bool IsSet() const { return line != 0; }
};

// Values of Rule::join that are not names.
inline constexpr std::string_view kJoinCgroup = "cgroup";  // one group per cgroup
inline constexpr std::string_view kJoinNone = "none";      // a group of its own

// One [[rule]]: conditions, all of which a client must meet, and what it then gets. The first matching rule counts;
// what it leaves out is as without rules.
struct Rule {
  std::optional<std::uint32_t> uid = {};
  std::optional<std::uint32_t> gid = {};
  std::optional<std::string> exe = {};
  std::optional<std::string> cgroup = {};
  std::optional<std::string> container = {};  // the start of its id
  std::optional<std::string> group = {};      // as the client named it

  std::optional<int> priority = {};
  std::optional<std::uint32_t> weight = {};
  std::optional<Latency> latency = {};
  std::optional<std::uint64_t> memory_limit = {};  // bytes of device memory on each device
  std::optional<std::string> join = {};            // the group that clients are put into
  std::vector<std::string> passthrough = {};       // in addition to Config::passthrough
  std::optional<std::string> metric_class = {};    // in the metrics (telemetry/meter.h)
  FilePlace place = {};

  // Whether users can make their clients match: by the name of a program, of a group, or of a cgroup that users create.
  // Such a rule counts as the user's own word: it raises nobody who may not raise himself.
  bool IsByChoice() const;
};

// The most that clients of one uid get, whoever sets it. What is not set is as for uids without a ceiling of their own.
struct Ceiling {
  std::optional<int> priority = {};
  std::optional<std::uint32_t> weight = {};
  FilePlace place = {};
};

// What each uid, and each place of one, may have and do on client.sock (connections/quotas.h).
struct Quota {
  std::uint32_t connections_per_uid = 2048;
  std::uint32_t clients_per_uid = 2000;  // fewer than connections, so that xschedctl still gets in
  std::uint32_t queues_per_client = 4096;
  std::uint32_t queues_per_uid = 32'768;
  std::uint32_t devices_per_uid = 16'384;
  std::uint32_t gpus_per_uid = 256;  // different ones; more than any machine has
  std::uint32_t memory_kib_per_uid = 16'384;
  std::uint32_t watchers_per_uid = 8;
  std::uint32_t connects_per_s = 1'000;
  std::uint32_t messages_per_s = 20'000;
  std::uint32_t message_kib_per_s = 16'384;
  std::uint32_t calls_per_s = 50;
  std::uint32_t root_times = 4;  // factor for uid 0, as which containers often run
};

// Metrics over HTTP (metrics/metrics_http.h). A socket from systemd is served whatever this says.
struct MetricsSettings {
  bool enabled = false;
  std::string address{kDefaultMetricsAddress};  // one that ParseListenAddress understands
  bool operator==(const MetricsSettings&) const = default;
};

struct Config {
  std::uint32_t lease_ms = 100;
  std::uint32_t activity_interval_ms = 1000;
  bool spin = false;          // do not sleep while clients are tracked
  bool enforce = true;        // false: decide and record as usual, but hold nobody
  bool software_gpu = false;  // believe clients about devices, for tests and demonstrations
  policy::Settings policy;
  std::vector<Rule> rules;
  std::map<std::uint32_t, Ceiling> ceilings;  // by uid
  Ceiling default_ceiling;                    // for every other uid
  Quota quota;
  MetricsSettings metrics;
  std::string readers = "xschedd-readers";  // the group that sees everybody's clients and changes only its own
  std::vector<std::string> passthrough;     // in the form of common/passthrough.h
  // The place of each key that is set: "policy.linger_us", "passthrough". If several files set it, the last one.
  std::map<std::string, FilePlace> places;
  std::vector<std::string> files;  // read, in this order

  // This uid's ceiling in the files; none: not set (registry/effective.h).
  std::optional<int> PriorityCeiling(std::uint32_t uid) const { return Limit(uid, &Ceiling::priority); }
  std::optional<std::uint32_t> WeightCeiling(std::uint32_t uid) const { return Limit(uid, &Ceiling::weight); }

 private:
  template <typename Value>
  Value Limit(std::uint32_t uid, Value Ceiling::*what) const {
    const auto found = ceilings.find(uid);
    return found != ceilings.end() && found->second.*what ? found->second.*what : default_ceiling.*what;
  }
};

// One file of a configuration.
struct ConfigFile {
  std::string path;  // as messages name it
  std::string text;
};

// One mistake in a configuration.
struct ConfigError {
  std::string file;
  std::uint32_t line = 0;  // 0: the file as a whole
  std::uint32_t column = 0;
  std::string what;  // these two are one line, whatever the file contains
  std::string remedy;
};

// All mistakes, in the order of the files; of a file that is not TOML, only the first syntax error. Without errors
// there is a configuration.
struct Examined {
  std::optional<Config> config;
  std::vector<ConfigError> errors;
  std::size_t more_errors = 0;  // beyond those
};
// A later file overrides an earlier one: tables key by key, the [[ceiling]] of a user as a whole. Rules and passthrough
// entries are appended; an empty passthrough list removes those of earlier files.
Examined ExamineConfig(const std::vector<ConfigFile>& files);

// Fails on the first mistake, with "file:line:column", cause and remedy.
Result<Config> ParseConfig(const std::vector<ConfigFile>& files);

}  // namespace xschedd
