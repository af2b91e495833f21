#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "common/parse_number.h"
#include "tools/bench/fleet/import.h"
#include "tools/bench/fleet/import_records.h"

namespace xschedd::fleet {
namespace {

using Json = nlohmann::json;

constexpr const char* kResources[] = {"amd.com/gpu", "nvidia.com/gpu"};
constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

struct Pod {
  std::string name;
  std::string space;
  std::uint32_t gpus = 0;
  int priority = 0;
  std::int64_t created_s = kNoTime;
  std::int64_t started_s = kNoTime;
  std::int64_t ended_s = kNoTime;
};

// Thrown with one line; FromPods adds the place.
struct RecordError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::int64_t TimeAt(const Json& object, const char* key, const std::string& pod) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return kNoTime;
  const std::optional<std::int64_t> time = found->is_string() ? ReadTime(found->get<std::string>()) : std::nullopt;
  if (!time) throw RecordError(fmt::format("pod {}: \"{}\" is {}, which is not a time", pod, key, found->dump()));
  return *time;
}

// A quantity of GPUs is a whole number, as a number or a string.
std::uint32_t GpusOf(const Json& containers, const std::string& pod) {
  std::uint32_t gpus = 0;
  for (const Json& container : containers) {
    const Json limits = container.value("resources", Json::object()).value("limits", Json::object());
    for (const char* const resource : kResources) {
      const auto found = limits.find(resource);
      if (found == limits.end()) continue;
      const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
      const auto count = ParseNumber<std::uint32_t>(text);
      if (!count)
        throw RecordError(fmt::format("pod {}: \"{}\" is \"{}\", which is not a number", pod, resource, text));
      gpus += *count;
    }
  }
  return gpus;
}

// The administrators' priority; a wrong one counts as none, as on the node.
int PriorityOf(const Json& metadata) {
  const Json annotations = metadata.value("annotations", Json::object());
  const std::string text = annotations.value("xschedd.io/priority", "0");
  const auto priority = ParseNumber<int>(text);
  return priority && *priority >= -100 && *priority <= 100 ? *priority : 0;
}

Pod ReadPod(const Json& record) {
  const Json metadata = record.value("metadata", Json::object());
  const Json status = record.value("status", Json::object());
  Pod pod;
  pod.space = metadata.value("namespace", "default");
  pod.name = pod.space + "/" + metadata.value("name", "");
  pod.gpus = GpusOf(record.value("spec", Json::object()).value("containers", Json::array()), pod.name);
  pod.priority = PriorityOf(metadata);
  pod.created_s = TimeAt(metadata, "creationTimestamp", pod.name);
  if (pod.created_s == kNoTime) throw RecordError(fmt::format("pod {}: no \"creationTimestamp\"", pod.name));
  for (const Json& container : status.value("containerStatuses", Json::array())) {
    const Json state = container.value("state", Json::object());
    const Json ran = state.contains("terminated") ? state["terminated"] : state.value("running", Json::object());
    const std::int64_t started_s = TimeAt(ran, "startedAt", pod.name);
    if (started_s != kNoTime) pod.started_s = pod.started_s == kNoTime ? started_s : std::min(pod.started_s, started_s);
    pod.ended_s = std::max(pod.ended_s, TimeAt(ran, "finishedAt", pod.name));
    if (state.contains("running")) pod.ended_s = std::numeric_limits<std::int64_t>::max();
  }
  return pod;
}

}  // namespace

Result<Imported> FromPods(std::istream& input, const std::string& source) {
  std::map<std::string, Pod> pods;  // by uid
  std::size_t number = 0;
  const auto add = [&](const Json& record) {
    ++number;
    const Json metadata = record.value("metadata", Json::object());
    pods[metadata.value("uid", metadata.value("namespace", "") + "/" + metadata.value("name", ""))] = ReadPod(record);
  };
  try {
    while (input >> std::ws && input.peek() != std::char_traits<char>::eof()) {
      Json document;
      input >> document;
      if (document.contains("items")) {
        for (const Json& record : document["items"])
          add(record);
      } else {
        add(document);
      }
    }
  } catch (const Json::exception& error) {
    return Fail(fmt::format("{}: after {} pods: not what kubectl writes: {}", source, number, error.what()),
                "make it with: kubectl get pods -A -o json");
  } catch (const RecordError& error) {
    return Fail(fmt::format("{}: {}", source, error.what()), "make it with: kubectl get pods -A -o json");
  }
  std::int64_t first_s = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_s = kNoTime;
  for (const auto& [uid, pod] : pods) {
    first_s = std::min(first_s, pod.created_s);
    last_s = std::max({last_s, pod.created_s, pod.started_s});
    if (pod.ended_s != std::numeric_limits<std::int64_t>::max()) last_s = std::max(last_s, pod.ended_s);
  }
  Imported imported;
  for (const auto& [uid, pod] : pods) {
    const std::int64_t end_s = std::min(pod.ended_s, last_s);
    if (pod.gpus == 0 || pod.started_s == kNoTime || end_s <= pod.started_s) {
      ++imported.left_out;
      continue;
    }
    Job job;
    job.name = pod.name;
    job.space = ImportedSpace(pod.space, imported.trace);
    job.arrival_s = static_cast<double>(pod.created_s - first_s);
    job.seconds = static_cast<double>(end_s - pod.started_s);
    job.demand = {pod.gpus, 0};
    job.priority = pod.priority;
    job.pattern = kImportedPattern;
    imported.trace.jobs.push_back(std::move(job));
  }
  if (Result<void> done = FinishTrace(imported.trace); !done) {
    return Fail(fmt::format("{}: none of its {} pods ran with GPUs", source, pods.size()),
                "make it with: kubectl get pods -A -o json");
  }
  return imported;
}

}  // namespace xschedd::fleet
