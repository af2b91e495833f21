#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <istream>
#include <limits>

#include "common/parse_number.h"
#include "tools/bench/fleet/import.h"
#include "tools/bench/fleet/import_records.h"

namespace xschedd::fleet {
namespace {

constexpr const char* kColumns[] = {"JobID", "Partition", "Submit", "ElapsedRaw", "TimelimitRaw", "ReqTRES"};
enum Column { kJob, kPartition, kSubmit, kElapsed, kLimit, kTres };

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// "billing=8,cpu=8,gres/gpu=2,gres/gpu:h200=2,mem=64G,node=1": what the job asked for; the typed entries repeat what
// the untyped ones say. Zero GPUs and zero shards: none.
std::optional<Demand> ReadTres(const std::string& text) {
  Demand demand{0, 0};
  for (const std::string& entry : Split(text, ',')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    if (name != "gres/gpu" && name != "gres/shard") continue;
    const std::optional<std::uint32_t> count = ParseNumber<std::uint32_t>(entry.substr(equals + 1));
    if (!count) return std::nullopt;
    (name == "gres/gpu" ? demand.gpus : demand.shards) = *count;
  }
  if (demand.gpus != 0) demand.shards = 0;
  return demand;
}

}  // namespace

Result<Imported> FromSacct(std::istream& input, const std::string& source) {
  Imported imported;
  std::vector<std::size_t> columns;
  std::string line;
  std::size_t number = 0;
  const auto fail = [&](const std::string& what) {
    return Fail(fmt::format("{}:{}: {}", source, number, what),
                fmt::format("make it with: sacct -a -X --parsable2 --format={}", fmt::join(kColumns, ",")));
  };
  std::int64_t first_s = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> submitted;
  while (std::getline(input, line)) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> fields = Split(line, '|');
    if (columns.empty()) {
      for (const char* const name : kColumns) {
        const auto found = std::find(fields.begin(), fields.end(), name);
        if (found == fields.end()) return fail(fmt::format("the first line has no column {}", name));
        columns.push_back(static_cast<std::size_t>(found - fields.begin()));
      }
      continue;
    }
    const std::size_t last = *std::max_element(columns.begin(), columns.end());
    if (fields.size() <= last) return fail(fmt::format("{} fields, and {} are needed", fields.size(), last + 1));
    const auto field = [&](Column column) -> const std::string& { return fields[columns[column]]; };
    const std::optional<Demand> demand = ReadTres(field(kTres));
    if (!demand) return fail(fmt::format("ReqTRES \"{}\" has a number that is none", field(kTres)));
    const std::optional<std::uint32_t> elapsed = ParseNumber<std::uint32_t>(field(kElapsed));
    if (!elapsed) return fail(fmt::format("ElapsedRaw \"{}\" is not a number of seconds", field(kElapsed)));
    const bool is_step = field(kJob).find('.') != std::string::npos;
    if (is_step || *elapsed == 0 || (demand->gpus == 0 && demand->shards == 0)) {
      ++imported.left_out;
      continue;
    }
    const std::optional<std::int64_t> submit = ReadTime(field(kSubmit));
    if (!submit) return fail(fmt::format("Submit \"{}\" is not a time such as 2026-11-25T08:30:00", field(kSubmit)));
    Job job;
    job.name = field(kJob);
    job.space = ImportedSpace(field(kPartition), imported.trace);
    job.seconds = *elapsed;
    job.limit_s =
        60.0 * ParseNumber<std::uint32_t>(field(kLimit)).value_or(0);  // minutes; "UNLIMITED", "Partition_Limit": none
    job.demand = *demand;
    job.pattern = kImportedPattern;
    imported.trace.jobs.push_back(std::move(job));
    submitted.push_back(*submit);
    first_s = std::min(first_s, *submit);
  }
  if (columns.empty()) return fail("there is no line");
  for (std::size_t i = 0; i < submitted.size(); ++i)
    imported.trace.jobs[i].arrival_s = static_cast<double>(submitted[i] - first_s);
  if (Result<void> done = FinishTrace(imported.trace); !done) return fail("no job has GPUs");
  return imported;
}

}  // namespace xschedd::fleet
