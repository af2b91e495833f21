#include "tools/xschedctl/slurm/limits.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "common/byte_size.h"
#include "common/memory_limit.h"
#include "common/priority.h"
#include "daemon/config/files.h"
#include "daemon/config/reader.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

constexpr std::size_t kMaxQuotedBytes = 64;  // of a user's text in a message
constexpr policy::Limits kNiceUnitLimits = {.max = 1'000'000'000, .min = 0};
// A priority of Slurm's is an unsigned number of 32 bits.
constexpr policy::Limits kSlurmPriorityLimits = {.max = ~0u, .min = 0};

std::string Quoted(std::string_view text) {
  return "\"" + OneLine(text.substr(0, kMaxQuotedBytes)) + (text.size() > kMaxQuotedBytes ? "..." : "") + "\"";
}

std::optional<int> Priority(ConfigReader& reader, const toml::table& table, std::string_view key) {
  int priority = 0;
  return reader.Priority(table, key, priority) ? std::optional(priority) : std::nullopt;
}

std::optional<std::uint64_t> Memory(ConfigReader& reader, const toml::table& table, std::string_view key) {
  std::uint64_t limit = 0;
  return reader.Memory(table, key, limit) ? std::optional(limit) : std::nullopt;
}

SlurmLimit Limit(ConfigReader& reader, const toml::table& table) {
  return {.priority = Priority(reader, table, "priority"),
          .ceiling = Priority(reader, table, "ceiling"),
          .memory = Memory(reader, table, "memory")};
}

// [partition.NAME] and the like.
std::map<std::string, SlurmLimit> NamedLimits(ConfigReader& reader, const toml::table& root, std::string_view key) {
  std::map<std::string, SlurmLimit> limits;
  reader.EachNamedTable(root, key, [&](const std::string& name, const toml::table& table, const std::string& place) {
    reader.OnlyKeys(table, place, {"priority", "ceiling", "memory"});
    limits[name] = Limit(reader, table);
  });
  return limits;
}

std::map<std::uint64_t, int> BySlurmPriority(ConfigReader& reader, const toml::table& root) {
  std::map<std::uint64_t, int> priorities;
  reader.EachTable(root, "by_slurm_priority", [&](const toml::table& table) {
    reader.OnlyKeys(table, "[[by_slurm_priority]]", {"at_least", "priority"});
    if (!table.contains("at_least") || !table.contains("priority"))
      return reader.Refuse(table, "a [[by_slurm_priority]] is incomplete", "give it at_least and priority");
    std::uint32_t at_least = 0;
    int priority = 0;
    const bool is_good = reader.Number(table, "at_least", kSlurmPriorityLimits, at_least);
    if (reader.Priority(table, "priority", priority) && is_good) priorities[at_least] = priority;
  });
  return priorities;
}

const SlurmLimit& Find(const std::map<std::string, SlurmLimit>& limits, const std::string& name) {
  static const SlurmLimit none;
  const auto found = limits.find(name);
  return found == limits.end() ? none : found->second;
}

// None: it is neither a word nor a priority.
std::optional<int> ParseRequest(const SlurmLimits& limits, std::string_view request) {
  if (const auto word = limits.words.find(std::string(request)); word != limits.words.end()) return word->second;
  const Result<int> number = ParsePriority(request);
  return number ? std::optional(*number) : std::nullopt;
}

struct LimitSource {
  const SlurmLimit* limit;
  std::string what;  // `partition "high"`
};

std::array<LimitSource, 3> SourcesOf(const SlurmLimits& limits, const SlurmJob& job) {
  return {{{&Find(limits.qos, job.qos), "QOS " + Quoted(job.qos)},
           {&Find(limits.accounts, job.account), "account " + Quoted(job.account)},
           {&Find(limits.partitions, job.partition), "partition " + Quoted(job.partition)}}};
}

}  // namespace

bool SlurmJob::IsLive() const {
  // A pending job was requeued; what ran here of it has ended. All other states are those of jobs that have ended.
  static constexpr std::array<std::string_view, 8> kLive = {"RUNNING",  "SUSPENDED", "COMPLETING", "CONFIGURING",
                                                            "RESIZING", "SIGNALING", "STAGE_OUT",  "STOPPED"};
  return std::find(kLive.begin(), kLive.end(), state) != kLive.end();
}

Result<SlurmLimits> ParseLimits(std::string_view text, const std::string& path) {
  const auto parsed = ParseToml(text, path);
  if (!parsed) return tl::unexpected<Error>(parsed.error().AsError());
  const toml::table& root = *parsed;
  ConfigReader reader(path);
  SlurmLimits limits;
  reader.OnlyKeys(
      root, "the file",
      {"priority", "ceiling", "memory", "nice_unit", "words", "partition", "qos", "account", "by_slurm_priority"});
  limits.general = Limit(reader, root);
  reader.Number(root, "nice_unit", kNiceUnitLimits, limits.nice_unit);
  if (const toml::table* const words = reader.Table(root, "words")) {
    reader.OnlyKeys(*words, "[words]", {"low", "normal", "high"});
    for (auto& [word, value] : limits.words)
      reader.Priority(*words, word, value);
  }
  limits.partitions = NamedLimits(reader, root, "partition");
  limits.qos = NamedLimits(reader, root, "qos");
  limits.accounts = NamedLimits(reader, root, "account");
  limits.by_slurm_priority = BySlurmPriority(reader, root);
  if (reader.Errors().empty()) return limits;
  return tl::unexpected<Error>(reader.Errors().front().AsError());
}

Result<SlurmLimits> ReadLimits(const std::string& path) {
  const auto text = ReadConfigText(path, {.open = "make it readable for root",
                                          .size = "name the right file by --limits",
                                          .read = "name a TOML file by --limits"});
  if (!text) return tl::unexpected<Error>(text.error());
  return ParseLimits(text->value_or(""), path);
}

GpuPriority PriorityOf(const SlurmLimits& limits, const SlurmJob& job, std::string_view request) {
  // The first source that has a default gives it; the lowest ceiling of all counts.
  std::optional<int> by_default;
  std::optional<int> ceiling;
  std::string whose = kSlurmLimitsPath;
  std::string whose_default = whose;
  for (const LimitSource& source : SourcesOf(limits, job)) {
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
  if (!request.empty()) {
    const std::optional<int> requested = ParseRequest(limits, request);
    if (!requested) {
      result.remark = "--gpu-priority=" + Quoted(request) + " is not low, normal, high or a number from -100 to 100";
    } else if (*requested > *ceiling) {
      result.value = *ceiling;
      result.remark = "--gpu-priority=" + OneLine(request) + " is limited by " + whose;
    } else {
      result.value = *requested;
    }
  }
  if (limits.nice_unit != 0) {
    const std::int64_t lowered = result.value - job.nice / static_cast<std::int64_t>(limits.nice_unit);
    result.value = static_cast<int>(std::clamp<std::int64_t>(lowered, kPriorityMin, *ceiling));
  }
  if (!result.remark.empty()) result.remark += "; the job has GPU priority " + std::to_string(result.value);
  return result;
}

GpuMemory MemoryOf(const SlurmLimits& limits, const SlurmJob& job, std::string_view request) {
  GpuMemory result;
  std::string whose = kSlurmLimitsPath;
  for (const LimitSource& source : SourcesOf(limits, job)) {
    if (!source.limit->memory || (result.limit != 0 && *source.limit->memory >= result.limit)) continue;
    result.limit = *source.limit->memory;
    whose = source.what;
  }
  if (result.limit == 0) result.limit = limits.general.memory.value_or(0);
  if (request.empty()) return result;
  const Result<std::uint64_t> requested = ParseMemoryLimit(request);
  if (!requested) {
    result.remark = "--gpu-memory=" + Quoted(request) + " is not a size such as 24G";
  } else if (result.limit != 0 && *requested > result.limit) {
    result.remark = "--gpu-memory=" + OneLine(request) + " is limited by " + whose;
  } else {
    result.limit = *requested;
  }
  if (!result.remark.empty()) {
    result.remark += result.limit == 0 ? "; the job has no limit"
                                       : "; the job may have " + ByteSizeText(result.limit) + " of each GPU's memory";
  }
  return result;
}

}  // namespace xschedd::ctl
