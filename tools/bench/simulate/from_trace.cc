#include "tools/bench/simulate/from_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "daemon/policy/types.h"

namespace xschedd::simulate {
namespace {

struct Dispatch {
  std::uint32_t device;
  std::uint64_t queue;
  std::uint64_t arrival_ns;  // when it could have started on an empty device
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

// Of one process, in order of start.
Result<std::vector<Dispatch>> ReadDispatches(const std::string& path) {
  std::ifstream file(path);
  std::vector<Dispatch> dispatches;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    if (file.eof()) break;  // no end of line: the writer was killed while writing it
    try {
      const nlohmann::json line = nlohmann::json::parse(text);
      if (line.at("kind") == "copy") continue;
      dispatches.push_back(
          {line.at("device"), line.at("queue"), line.at("arrival_ns"), line.at("start_ns"), line.at("end_ns")});
    } catch (const nlohmann::json::exception& error) {
      return Fail(fmt::format("{}:{}: {}", path, number, error.what()), "give the prefix of a software GPU's trace");
    }
  }
  std::sort(dispatches.begin(), dispatches.end(),
            [](const Dispatch& a, const Dispatch& b) { return a.start_ns < b.start_ns; });
  return dispatches;
}

void AddKernel(Program& program, std::uint64_t kernel_ns) {
  if (!program.empty() && program.back().kernel_ns == kernel_ns) {
    ++program.back().count;
  } else {
    program.push_back({.kernel_ns = kernel_ns});
  }
}

// A client for one device of a process.
ClientSpec MakeClient(const std::vector<Dispatch>& dispatches, std::uint32_t device, std::uint64_t start_ns,
                      const TraceOptions& options) {
  ClientSpec client;
  client.devices = {device};
  client.arrivals.kind = options.is_closed ? ArrivalKind::kGivenClosed : ArrivalKind::kGiven;
  std::set<std::uint64_t> queues;
  std::map<std::vector<std::pair<std::uint64_t, std::uint32_t>>, std::uint32_t> known;
  Program program;
  std::uint64_t begun_ns = 0;
  std::uint64_t end_ns = start_ns;
  std::uint64_t last_end_ns = start_ns;  // of the request before
  const auto finish = [&] {
    if (program.empty()) return;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> key;
    for (const Burst& burst : program)
      key.emplace_back(burst.kernel_ns, burst.count);
    const auto [found, is_new] = known.emplace(std::move(key), client.programs.size());
    if (is_new) client.programs.push_back(program);
    client.given.push_back(
        {options.is_closed ? begun_ns - std::min(last_end_ns, begun_ns) : begun_ns - start_ns, found->second});
    last_end_ns = end_ns;
    program.clear();
  };
  for (const Dispatch& dispatch : dispatches) {
    if (dispatch.device != device) continue;
    queues.insert(dispatch.queue);
    if (program.empty() || dispatch.arrival_ns > end_ns + options.gap_ns) {
      finish();
      begun_ns = dispatch.arrival_ns;
    }
    AddKernel(program, std::max<std::uint64_t>(dispatch.end_ns - dispatch.start_ns, 1));
    end_ns = std::max(end_ns, dispatch.end_ns);
  }
  finish();
  client.streams = static_cast<std::uint32_t>(std::max<std::size_t>(queues.size(), 1));
  return client;
}

}  // namespace

Result<Workload> FromTrace(const std::string& prefix, const TraceOptions& options) {
  const std::filesystem::path path(prefix);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const std::string begin = path.filename().string() + ".";
  constexpr std::string_view kEnd = ".jsonl";
  std::map<std::uint64_t, std::vector<Dispatch>> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= begin.size() + kEnd.size() || name.compare(0, begin.size(), begin) != 0) continue;
    const std::string pid = name.substr(begin.size(), name.size() - begin.size() - kEnd.size());
    if (name.substr(name.size() - kEnd.size()) != kEnd || pid.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    Result<std::vector<Dispatch>> dispatches = ReadDispatches(entry.path().string());
    if (!dispatches) return tl::unexpected(dispatches.error());
    if (!dispatches->empty()) processes.emplace(std::stoull(pid), std::move(*dispatches));
  }
  if (processes.empty()) {
    return Fail(fmt::format("no file {}.<pid>.jsonl has a kernel", prefix),
                "give the prefix that the software GPU was given by --trace");
  }

  std::uint64_t start_ns = policy::kNever;
  std::uint64_t end_ns = 0;
  Workload workload;
  for (const auto& [pid, dispatches] : processes) {
    for (const Dispatch& dispatch : dispatches) {
      start_ns = std::min(start_ns, dispatch.arrival_ns);
      end_ns = std::max(end_ns, dispatch.end_ns);
      workload.devices = std::max(workload.devices, dispatch.device + 1);
    }
  }
  workload.name = path.filename().string();
  workload.length_ns = end_ns - start_ns;
  for (const auto& [pid, dispatches] : processes) {
    std::set<std::uint32_t> devices;
    for (const Dispatch& dispatch : dispatches)
      devices.insert(dispatch.device);
    for (const std::uint32_t device : devices) {
      ClientSpec client = MakeClient(dispatches, device, start_ns, options);
      client.name = fmt::format("pid-{}", pid);
      client.class_name = client.name;
      if (devices.size() > 1) {
        // A process's devices are simulated separately; as one group they are one client to the policy.
        client.group = client.name;
        client.name += fmt::format("-device-{}", device);
      }
      workload.clients.push_back(std::move(client));
    }
  }
  return workload;
}

}  // namespace xschedd::simulate
