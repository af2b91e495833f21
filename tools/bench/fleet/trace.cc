#include "tools/bench/fleet/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "tools/bench/simulate/fields.h"

namespace xschedd::fleet {
namespace {

using Json = nlohmann::json;
using simulate::Fields;
using simulate::FormatError;

constexpr double kMaxSeconds = 1e10;  // some 300 years
constexpr double kMaxShards = 1000;
constexpr double kMaxTier = 1e9;

double Whole(Fields& fields, const std::string& key, double missing, double least, double most) {
  const double number = fields.Number(key, missing, least, most);
  if (number != static_cast<double>(static_cast<std::int64_t>(number))) {
    throw FormatError(fmt::format("\"{}\" is {}, which is not a whole number", key, number));
  }
  return number;
}

void ReadSpace(const Json& line, Trace& trace) {
  Fields fields(line, "a space");
  Space space;
  space.name = fields.Text("space", "");
  space.tier = static_cast<std::uint32_t>(Whole(fields, "tier", 1, 0, kMaxTier));
  space.priority = static_cast<int>(Whole(fields, "priority", 0, -100, 100));
  space.pattern = fields.Text("pattern", "");
  space.shards = static_cast<std::uint32_t>(Whole(fields, "shards", 0, 0, kMaxShards));
  space.limit_s = fields.Number("limit_s", 0, 0, kMaxSeconds);
  fields.RejectUnknown();
  for (const Space& other : trace.spaces)
    if (other.name == space.name) throw FormatError(fmt::format("there is already a space \"{}\"", space.name));
  trace.spaces.push_back(space);
}

void ReadJob(const Json& line, Trace& trace) {
  Fields fields(line, "a job");
  Job job;
  job.name = fields.Text("job", "");
  const std::string name = fields.Text("space", "");
  const auto space =
      std::find_if(trace.spaces.begin(), trace.spaces.end(), [&](const Space& q) { return q.name == name; });
  if (space == trace.spaces.end())
    throw FormatError(fmt::format("a job: \"space\" is \"{}\", and no line above has it", name));
  job.space = static_cast<std::uint32_t>(space - trace.spaces.begin());
  job.arrival_s = fields.Required("at_s", 0, kMaxSeconds);
  job.seconds = fields.Required("seconds", 1e-3, kMaxSeconds);
  job.limit_s = fields.Number("limit_s", space->limit_s, 0, kMaxSeconds);
  job.priority = static_cast<int>(Whole(fields, "priority", space->priority, -100, 100));
  job.pattern = fields.Text("pattern", space->pattern);
  if (job.pattern.empty()) throw FormatError("a job needs \"pattern\", or its space does");
  const auto gpus = static_cast<std::uint32_t>(Whole(fields, "gpus", 1, 1, 1e6));
  const auto shards = static_cast<std::uint32_t>(Whole(fields, "shards", gpus == 1 ? space->shards : 0, 0, kMaxShards));
  if (gpus > 1 && shards != 0) throw FormatError("a job: \"shards\" are of one GPU, and \"gpus\" is more");
  job.demand = shards != 0 ? Demand{0, shards} : Demand{gpus, 0};
  fields.RejectUnknown();
  trace.jobs.push_back(std::move(job));
}

}  // namespace

Result<void> ReadTrace(std::istream& input, const std::string& source, Trace& trace) {
  std::string text;
  std::size_t number = 0;
  try {
    while (std::getline(input, text)) {
      ++number;
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      const Json line = Json::parse(text);
      if (!line.is_object()) throw FormatError("each line must be an object");
      if (line.contains("job")) {
        ReadJob(line, trace);
      } else if (line.contains("space")) {
        ReadSpace(line, trace);
      } else {
        throw FormatError("a line must have \"job\" or \"space\"");
      }
    }
    return {};
  } catch (const Json::exception& error) {
    return Fail(fmt::format("{}:{}: not JSON: {}", source, number, error.what()), "write one object a line");
  } catch (const FormatError& error) {
    return Fail(fmt::format("{}:{}: {}", source, number, error.what()),
                "docs/contributing/fleet-simulator.md describes the format");
  }
}

Result<void> FinishTrace(Trace& trace) {
  if (trace.jobs.empty())
    return Fail("the trace has no job", "docs/contributing/fleet-simulator.md describes the format");
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_s < b.arrival_s; });
  return {};
}

void WriteTrace(const Trace& trace, std::ostream& output) {
  for (const Space& space : trace.spaces) {
    Json line = {{"space", space.name}, {"tier", space.tier}, {"priority", space.priority}, {"shards", space.shards}};
    if (!space.pattern.empty()) line["pattern"] = space.pattern;
    if (space.limit_s != 0) line["limit_s"] = space.limit_s;
    output << line << '\n';
  }
  for (const Job& job : trace.jobs) {
    const Space& space = trace.spaces[job.space];
    Json line = {{"job", job.name}, {"space", space.name}, {"at_s", job.arrival_s}, {"seconds", job.seconds}};
    const bool is_one = job.demand.shards != 0 || job.demand.gpus == 1;
    if (job.demand.gpus > 1) line["gpus"] = job.demand.gpus;
    if (is_one && job.demand.shards != space.shards) line["shards"] = job.demand.shards;
    if (job.limit_s != space.limit_s) line["limit_s"] = job.limit_s;
    if (job.priority != space.priority) line["priority"] = job.priority;
    if (job.pattern != space.pattern) line["pattern"] = job.pattern;
    output << line << '\n';
  }
}

}  // namespace xschedd::fleet
