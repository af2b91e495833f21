#include "tools/xschedctl/slurm/limits.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "common/priority.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxQuotedBytes = 64;  // of text from a user or a file in a message
constexpr std::int64_t kMaxNiceUnit = 1'000'000'000;

std::string Quoted(std::string_view text) {
  return "\"" + Harmless(text.substr(0, kMaxQuotedBytes)) + (text.size() > kMaxQuotedBytes ? "..." : "") + "\"";
}

// Keeps the first mistake; every function goes on after one.
class LimitReader {
 public:
  explicit LimitReader(std::string_view path) : path_(path) {}

  void Refuse(const toml::node& node, const std::string& what) {
    if (!mistake_.empty()) return;
    mistake_ = path_ + ":" + std::to_string(node.source().begin.line) + ": " + what;
  }

  void OnlyKeys(const toml::table& table, std::initializer_list<std::string_view> known) {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        Refuse(node, "there is no setting " + Quoted(key.str()));
    }
  }

  std::optional<std::int64_t> Number(const toml::table& table, std::string_view key, std::int64_t min,
                                     std::int64_t max) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const auto number = node->value_exact<std::int64_t>();
    if (number && *number >= min && *number <= max) return number;
    Refuse(*node, Quoted(key) + " must be a number from " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }

  std::optional<int> Priority(const toml::table& table, std::string_view key) {
    const auto number = Number(table, key, kPriorityMin, kPriorityMax);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  }

  SlurmLimit Limit(const toml::table& table) {
    return {.priority = Priority(table, "priority"), .ceiling = Priority(table, "ceiling")};
  }

  const toml::table* Table(const toml::table& root, std::string_view key) {
    const toml::node* const node = root.get(key);
    if (node == nullptr || node->is_table()) return node == nullptr ? nullptr : node->as_table();
    Refuse(*node, Quoted(key) + " must be a table, [" + std::string(key) + "]");
    return nullptr;
  }

  // [partition.NAME] and the like.
  void Limits(const toml::table& root, std::string_view key, std::map<std::string, SlurmLimit>& limits) {
    const toml::table* const named = Table(root, key);
    if (named == nullptr) return;
    for (const auto& [name, node] : *named) {
      const toml::table* const table = node.as_table();
      if (table == nullptr) {
        Refuse(node, Quoted(name.str()) + " must be a table, [" + std::string(key) + ".NAME]");
        continue;
      }
      OnlyKeys(*table, {"priority", "ceiling"});
      limits[std::string(name.str())] = Limit(*table);
    }
  }

  void ByPriority(const toml::table& root, std::map<std::uint64_t, int>& rows) {
    const toml::node* const node = root.get("by_slurm_priority");
    if (node == nullptr) return;
    const toml::array* const array = node->as_array();
    if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
      Refuse(*node, "\"by_slurm_priority\" must be tables, [[by_slurm_priority]]");
      return;
    }
    for (const toml::node& each : *array) {
      const toml::table& table = *each.as_table();
      OnlyKeys(table, {"at_least", "priority"});
      const auto at_least = Number(table, "at_least", 0, INT64_MAX);
      const auto priority = Priority(table, "priority");
      if (at_least && priority) {
        rows[static_cast<std::uint64_t>(*at_least)] = *priority;
      } else {
        Refuse(each, "[[by_slurm_priority]] needs \"at_least\" and \"priority\"");
      }
    }
  }

  const std::string& Mistake() const { return mistake_; }

 private:
  std::string path_;
  std::string mistake_;
};

const SlurmLimit& Find(const std::map<std::string, SlurmLimit>& limits, const std::string& name) {
  static const SlurmLimit none;
  const auto found = limits.find(name);
  return found == limits.end() ? none : found->second;
}

// None: it is neither a word nor a priority.
std::optional<int> ReadWish(const SlurmLimits& limits, std::string_view wish) {
  if (const auto word = limits.words.find(std::string(wish)); word != limits.words.end()) return word->second;
  const Result<int> number = ParsePriority(wish);
  return number ? std::optional(*number) : std::nullopt;
}

struct LimitSource {
  const SlurmLimit* limit;
  std::string what;  // `partition "high"`
};

}  // namespace

bool SlurmJob::IsLive() const {
  // A pending job was requeued; what ran here of it has ended. All other states are those of jobs that have ended.
  static constexpr std::array<std::string_view, 8> kLive = {"RUNNING",  "SUSPENDED", "COMPLETING", "CONFIGURING",
                                                            "RESIZING", "SIGNALING", "STAGE_OUT",  "STOPPED"};
  return std::find(kLive.begin(), kLive.end(), state) != kLive.end();
}

Result<SlurmLimits> ParseLimits(std::string_view text, std::string_view path) {
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    return Fail(std::string(path) + ":" + std::to_string(error.source().begin.line) + ": " +
                Harmless(error.description()));
  }
  LimitReader reader(path);
  SlurmLimits limits;
  reader.OnlyKeys(root,
                  {"priority", "ceiling", "nice_unit", "words", "partition", "qos", "account", "by_slurm_priority"});
  limits.general = reader.Limit(root);
  if (const auto unit = reader.Number(root, "nice_unit", 0, kMaxNiceUnit))
    limits.nice_unit = static_cast<std::uint32_t>(*unit);
  if (const toml::table* const words = reader.Table(root, "words")) {
    reader.OnlyKeys(*words, {"low", "normal", "high"});
    for (auto& [word, value] : limits.words)
      value = reader.Priority(*words, word).value_or(value);
  }
  reader.Limits(root, "partition", limits.partitions);
  reader.Limits(root, "qos", limits.qos);
  reader.Limits(root, "account", limits.accounts);
  reader.ByPriority(root, limits.by_slurm_priority);
  if (!reader.Mistake().empty()) return Fail(reader.Mistake());
  return limits;
}

Result<SlurmLimits> ReadLimits(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) return SlurmLimits();
    return Fail("cannot read " + path + ": " + std::strerror(errno));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Fail("cannot read " + path + ": " + std::strerror(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) return Fail(path + " is larger than 1 MiB");
  return ParseLimits(text, path);
}

GpuPriority PriorityOf(const SlurmLimits& limits, const SlurmJob& job, std::string_view wish) {
  const std::array<LimitSource, 3> sources = {
      {{&Find(limits.qos, job.qos), "QOS " + Quoted(job.qos)},
       {&Find(limits.accounts, job.account), "account " + Quoted(job.account)},
       {&Find(limits.partitions, job.partition), "partition " + Quoted(job.partition)}}};
  // The first source that has a default gives it; the lowest ceiling of all counts.
  std::optional<int> by_default;
  std::optional<int> ceiling;
  std::string whose = kSlurmLimitsPath;
  std::string whose_default = whose;
  for (const LimitSource& source : sources) {
    if (!by_default && source.limit->priority) {
      by_default = source.limit->priority;
      whose_default = source.what;
    }
    if (source.limit->ceiling && (!ceiling || *source.limit->ceiling < *ceiling)) {
      ceiling = source.limit->ceiling;
      whose = source.what;
    }
  }
  if (!by_default) by_default = limits.general.priority;
  if (const auto above = limits.by_slurm_priority.upper_bound(job.priority); above != limits.by_slurm_priority.begin())
    by_default = std::prev(above)->second;
  if (!ceiling) {
    // Who gives a priority and no ceiling allows that priority.
    ceiling = std::max(limits.general.ceiling.value_or(kPriorityMin), by_default.value_or(0));
    if (ceiling != limits.general.ceiling) whose = whose_default;
  }

  GpuPriority result;
  result.value = std::min(by_default.value_or(0), *ceiling);
  if (!wish.empty()) {
    const std::optional<int> wished = ReadWish(limits, wish);
    if (!wished) {
      result.remark = "--gpu-priority=" + Quoted(wish) + " is not low, normal, high or a number from -100 to 100";
    } else if (*wished > *ceiling) {
      result.value = *ceiling;
      result.remark = "--gpu-priority=" + Harmless(wish) + " is limited by " + whose;
    } else {
      result.value = *wished;
    }
  }
  if (limits.nice_unit != 0) {
    const std::int64_t lowered = result.value - job.nice / static_cast<std::int64_t>(limits.nice_unit);
    result.value = static_cast<int>(std::clamp<std::int64_t>(lowered, kPriorityMin, *ceiling));
  }
  if (!result.remark.empty()) result.remark += "; the job has GPU priority " + std::to_string(result.value);
  return result;
}

}  // namespace xschedd::ctl
