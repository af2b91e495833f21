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

void ReadQueue(const Json& line, Trace& trace) {
  Fields fields(line, "a queue");
  Queue queue;
  queue.name = fields.Text("queue", "");
  queue.tier = static_cast<std::uint32_t>(Whole(fields, "tier", 1, 0, kMaxTier));
  queue.priority = static_cast<int>(Whole(fields, "priority", 0, -100, 100));
  queue.pattern = fields.Text("pattern", "");
  queue.shards = static_cast<std::uint32_t>(Whole(fields, "shards", 0, 0, kMaxShards));
  queue.limit_s = fields.Number("limit_s", 0, 0, kMaxSeconds);
  fields.RejectUnknown();
  for (const Queue& other : trace.queues)
    if (other.name == queue.name) throw FormatError(fmt::format("there is already a queue \"{}\"", queue.name));
  trace.queues.push_back(queue);
}

void ReadJob(const Json& line, Trace& trace) {
  Fields fields(line, "a job");
  Job job;
  job.name = fields.Text("job", "");
  const std::string name = fields.Text("queue", "");
  const auto queue = std::find_if(trace.queues.begin(), trace.queues.end(), [&](const Queue& q) { return q.name == name; });
  if (queue == trace.queues.end()) throw FormatError(fmt::format("a job: \"queue\" is \"{}\", and no line above has it", name));
  job.queue = static_cast<std::uint32_t>(queue - trace.queues.begin());
  job.arrival_s = fields.Required("at_s", 0, kMaxSeconds);
  job.seconds = fields.Required("seconds", 1e-3, kMaxSeconds);
  job.limit_s = fields.Number("limit_s", queue->limit_s, 0, kMaxSeconds);
  job.priority = static_cast<int>(Whole(fields, "priority", queue->priority, -100, 100));
  job.pattern = fields.Text("pattern", queue->pattern);
  if (job.pattern.empty()) throw FormatError("a job needs \"pattern\", or its queue does");
  const auto gpus = static_cast<std::uint32_t>(Whole(fields, "gpus", 1, 1, 1e6));
  const auto shards = static_cast<std::uint32_t>(Whole(fields, "shards", gpus == 1 ? queue->shards : 0, 0, kMaxShards));
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
      } else if (line.contains("queue")) {
        ReadQueue(line, trace);
      } else {
        throw FormatError("a line must have \"job\" or \"queue\"");
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
  if (trace.jobs.empty()) return Fail("the trace has no job", "docs/contributing/fleet-simulator.md describes the format");
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_s < b.arrival_s; });
  return {};
}

void WriteTrace(const Trace& trace, std::ostream& output) {
  for (const Queue& queue : trace.queues) {
    Json line = {{"queue", queue.name}, {"tier", queue.tier}, {"priority", queue.priority}, {"shards", queue.shards}};
    if (!queue.pattern.empty()) line["pattern"] = queue.pattern;
    if (queue.limit_s != 0) line["limit_s"] = queue.limit_s;
    output << line << '\n';
  }
  for (const Job& job : trace.jobs) {
    const Queue& queue = trace.queues[job.queue];
    Json line = {{"job", job.name}, {"queue", queue.name}, {"at_s", job.arrival_s}, {"seconds", job.seconds}};
    const bool is_one = job.demand.shards != 0 || job.demand.gpus == 1;
    if (job.demand.gpus > 1) line["gpus"] = job.demand.gpus;
    if (is_one && job.demand.shards != queue.shards) line["shards"] = job.demand.shards;
    if (job.limit_s != queue.limit_s) line["limit_s"] = job.limit_s;
    if (job.priority != queue.priority) line["priority"] = job.priority;
    if (job.pattern != queue.pattern) line["pattern"] = job.pattern;
    output << line << '\n';
  }
}

}  // namespace xschedd::fleet
