// The daemon's configuration: TOML files over defaults that need no file. daemon/xschedd.toml documents every key;
// files.h says which files there are. Thread rule: values.
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

// Where something stands in the files.
struct FilePlace {
  std::string file;
  std::uint32_t line = 0;
  bool IsSet() const { return line != 0; }
};

// Values of Rule::join that are no names.
inline constexpr std::string_view kJoinCgroup = "cgroup";  // one group for each cgroup
inline constexpr std::string_view kJoinNone = "none";      // a group of its own

// What clients that fit all of the first part are given. The first rule that fits counts; what it does not give is as
// without rules.
struct Rule {
  std::optional<std::uint32_t> uid = {};
  std::optional<std::uint32_t> gid = {};
  std::optional<std::string> exe = {};
  std::optional<std::string> cgroup = {};
  std::optional<std::string> container = {};  // the beginning of its id
  std::optional<std::string> group = {};      // as the client named it

  std::optional<int> priority = {};
  std::optional<std::uint32_t> weight = {};
  std::optional<Latency> latency = {};
  std::optional<std::string> join = {};          // the group that they are put into
  std::vector<std::string> passthrough = {};     // in addition to Config::passthrough
  std::optional<std::string> metric_class = {};  // in the metrics (telemetry/meter.h)
  FilePlace place = {};

  // Whether a user can choose to fit: by what a program is called, by a group's name, by a cgroup that users make. Such
  // a rule is the user's own word: it raises nobody who may not raise himself.
  bool IsByChoice() const;
};

// The most that clients of one uid get, by whatever way. What is not set is as for uids without a ceiling of their own.
struct Ceiling {
  std::optional<int> priority = {};
  std::optional<std::uint32_t> weight = {};
  FilePlace place = {};
};

// What each uid may have and do at client.sock (connections/quotas.h).
struct Quota {
  std::uint32_t connections_per_uid = 2048;
  std::uint32_t clients_per_uid = 2000;  // fewer than connections: xschedctl still gets in
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
  std::uint32_t root_times = 4;  // uid 0 may have so many times as much: containers often run as root
};

// Metrics over HTTP (metrics/metrics_http.h). What systemd hands over is served whatever this says.
struct MetricsSettings {
  bool enabled = false;
  std::string address{kDefaultMetricsAddress};  // one that ParseListenAddress understands
  bool operator==(const MetricsSettings&) const = default;
};

struct Config {
  std::uint32_t lease_ms = 100;
  std::uint32_t activity_interval_ms = 1000;
  bool spin = false;          // do not sleep while clients are tracked
  bool enforce = true;        // false: decide and record as ever, and hold nobody
  bool software_gpu = false;  // devices are what clients say: for tests and demonstrations
  policy::Settings policy;
  std::vector<Rule> rules;
  std::map<std::uint32_t, Ceiling> ceilings;  // by uid
  Ceiling default_ceiling;                    // for every other uid
  Quota quota;
  MetricsSettings metrics;
  std::string readers = "xschedd-readers";  // the group that sees everybody's clients and changes nothing
  std::vector<std::string> passthrough;     // each is one that common/passthrough.h understands
  // Where each key stands that is there: "policy.linger_us", "passthrough". Of several files: in the last one.
  std::map<std::string, FilePlace> places;
  std::vector<std::string> files;  // that were read, in this order

  // What the file says of this uid; none: nothing (registry/effective.h).
  std::optional<int> PriorityCeiling(std::uint32_t uid) const { return Limit(uid, &Ceiling::priority); }
  std::optional<std::uint32_t> WeightCeiling(std::uint32_t uid) const { return Limit(uid, &Ceiling::weight); }

 private:
  template <typename Value>
  Value Limit(std::uint32_t uid, Value Ceiling::*what) const {
    const auto found = ceilings.find(uid);
    return found != ceilings.end() && found->second.*what ? found->second.*what : default_ceiling.*what;
  }
};

// One of the files that make a configuration.
struct ConfigFile {
  std::string path;  // as messages should call it
  std::string text;
};

// One thing that is wrong with a configuration.
struct ConfigError {
  std::string file;
  std::uint32_t line = 0;  // 0: of the file as a whole
  std::uint32_t column = 0;
  std::string what;  // these two fit on one line, whatever is in the file
  std::string remedy;
};

// All that is wrong with a configuration, in the order of the files; of a file that is no TOML only where its syntax
// ends to be. Without an error there is a configuration.
struct Examined {
  std::optional<Config> config;
  std::vector<ConfigError> errors;
  std::size_t more_errors = 0;  // beyond those
};
// A later file goes before an earlier one: key by key in tables, as a whole in the [[ceiling]] of a user. Rules and
// passthrough entries are added behind those of earlier files; an empty list of passthrough takes those away.
Examined ExamineConfig(const std::vector<ConfigFile>& files);

// Fails on the first thing that is not understood, with "file:line:column", the cause and a remedy.
Result<Config> ParseConfig(const std::vector<ConfigFile>& files);

}  // namespace xschedd
