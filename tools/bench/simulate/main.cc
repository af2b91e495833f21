// `simulate`: replays workloads through the daemon's policies in virtual time and prints the results of each class
// beside those of the same workload unscheduled. docs/contributing/simulator.md. Thread rule: one thread.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/command_syntax.h"
#include "tools/bench/simulate/from_trace.h"
#include "tools/bench/simulate/parameters.h"
#include "tools/bench/simulate/report.h"
#include "tools/bench/simulate/simulation.h"

namespace {

using namespace xschedd::simulate;
using xschedd::Fail;
using xschedd::Result;

struct Options {
  std::vector<std::string> workloads;
  std::string trace;
  bool closed = false;
  double gap_us = 200;
  std::string save;
  std::string policy = "priority";
  std::vector<std::string> settings;
  std::vector<std::string> sweeps;
  std::vector<std::string> priorities;
  double seconds = 0;
  std::uint64_t seed = 1;
  bool json = false;
};

Result<Parameters> MakeParameters(const Options& options) {
  Parameters parameters;
  const auto name = xschedd::policy::NameFrom(options.policy);
  if (!name) {
    return Fail(fmt::format("there is no policy \"{}\"", options.policy),
                fmt::format("there are {}", fmt::join(xschedd::policy::NameTexts(), ", ")));
  }
  parameters.settings.name = *name;
  parameters.seed = options.seed;
  for (const std::string& text : options.settings) {
    if (const Result<void> set = SetByText(parameters, text); !set) return tl::unexpected(set.error());
  }
  return parameters;
}

Result<std::vector<Workload>> Load(const Options& options) {
  std::vector<Workload> workloads;
  for (const std::string& path : options.workloads) {
    std::ifstream file(path);
    if (!file)
      return Fail(fmt::format("cannot read {}", path), "give a file as docs/contributing/simulator.md describes it");
    Result<Workload> workload = ReadWorkload(file, path);
    if (!workload) return tl::unexpected(workload.error());
    workloads.push_back(std::move(*workload));
  }
  if (!options.trace.empty()) {
    Result<Workload> workload = FromTrace(
        options.trace, {.gap_ns = static_cast<std::uint64_t>(options.gap_us * 1e3), .is_closed = options.closed});
    if (!workload) return tl::unexpected(workload.error());
    workloads.push_back(std::move(*workload));
  }
  if (workloads.empty()) return Fail("no workload was given", "name a workload file, or give --from-trace");
  for (Workload& workload : workloads) {
    if (options.seconds > 0) workload.length_ns = static_cast<std::uint64_t>(options.seconds * 1e9);
  }
  return workloads;
}

// "class=priority", because traces have no priorities.
Result<void> SetPriorities(std::vector<Workload>& workloads, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    int priority = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, error] = std::from_chars(begin, end, priority);
    if (error != std::errc() || stop != end || priority < -100 || priority > 100) {
      return Fail(fmt::format("--priority {} is not understood", text), "write it as class=50, from -100 to 100");
    }
    bool is_known = false;
    for (Workload& workload : workloads) {
      for (ClientSpec& client : workload.clients) {
        if (text.compare(0, equals, client.class_name) != 0) continue;
        client.priority = priority;
        is_known = true;
      }
    }
    if (!is_known) return Fail(fmt::format("no client has the class \"{}\"", text.substr(0, equals)), "see the table");
  }
  return {};
}

Result<void> Sweep(const Workload& workload, const Parameters& base, const std::string& text, const Results& reference,
                   nlohmann::json* json) {
  const Result<Assignment> assignment = ParseAssignment(text);
  if (!assignment) return tl::unexpected(assignment.error());
  std::vector<SweepPoint> points;
  for (const std::uint32_t value : assignment->values) {
    Parameters parameters = base;
    if (Result<void> set = Set(parameters, assignment->name, value); !set) return set;
    points.push_back({std::to_string(value), Simulate(workload, parameters)});
    if (json != nullptr) {
      nlohmann::json one = ToJson(points.back().results, reference);
      one["workload"] = workload.name;
      one[assignment->name] = value;
      json->push_back(one);
    }
  }
  if (json == nullptr) fmt::print("{}", SweepTable(assignment->name, points, reference));
  return {};
}

Result<void> Run(const Options& options) {
  const Result<Parameters> parameters = MakeParameters(options);
  if (!parameters) return tl::unexpected(parameters.error());
  Result<std::vector<Workload>> workloads = Load(options);
  if (!workloads) return tl::unexpected(workloads.error());
  if (Result<void> set = SetPriorities(*workloads, options.priorities); !set) return set;
  if (!options.save.empty()) {
    std::ofstream file(options.save);
    for (const Workload& workload : *workloads)
      WriteWorkload(workload, file);
    if (!file) return Fail(fmt::format("cannot write {}", options.save), "give --save another path");
    return {};
  }
  nlohmann::json json = nlohmann::json::array();
  for (const Workload& workload : *workloads) {
    Parameters reference_parameters = *parameters;
    reference_parameters.unscheduled = true;
    const auto start = std::chrono::steady_clock::now();
    const Results reference = Simulate(workload, reference_parameters);
    if (!options.json) {
      fmt::print("{}: {} client{} on {} device{}, {:g} s of virtual time, policy {}, seed {}\n", workload.name,
                 workload.clients.size(), workload.clients.size() == 1 ? "" : "s", workload.devices,
                 workload.devices == 1 ? "" : "s", static_cast<double>(workload.length_ns) / 1e9, options.policy,
                 options.seed);
    }
    for (const std::string& sweep : options.sweeps) {
      if (Result<void> done = Sweep(workload, *parameters, sweep, reference, options.json ? &json : nullptr); !done) {
        return done;
      }
    }
    if (!options.sweeps.empty()) continue;
    const Results results = Simulate(workload, *parameters);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const double rate = static_cast<double>(results.events + reference.events) / wall.count();
    if (options.json) {
      nlohmann::json one = ToJson(results, reference);
      one["workload"] = workload.name;
      one["policy"] = options.policy;
      one["wall_s"] = wall.count();
      one["events_per_s"] = rate;
      json.push_back(one);
    } else {
      fmt::print("{}{} events in {:.2f} s with the unscheduled run: {:.1f} million events/s\n",
                 Table(results, reference), results.events + reference.events, wall.count(), rate / 1e6);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  xschedd::CommandSyntax syntax(
      "Replays workloads through xschedd's policies in virtual time, and compares with the same unscheduled.");
  syntax.AddOption("workload", options.workloads, "files of JSON lines (docs/contributing/simulator.md)");
  syntax.AddOption("--from-trace", options.trace,
                   "make a workload from the software GPU's trace files PREFIX.<pid>.jsonl");
  syntax.AddFlag("--closed", options.closed,
                 "with --from-trace: keep the pauses between requests instead of their times");
  syntax.AddOption("--gap-us", options.gap_us, "with --from-trace: the pause that ends a request",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--save", options.save, "write the workload to this file and simulate nothing");
  syntax.AddOption("--policy", options.policy, "name of the policy");
  syntax.AddOption("--set", options.settings,
                   fmt::format("setting=value; repeat for several. There are {}", fmt::join(Names(), ", ")));
  syntax.AddOption("--sweep", options.sweeps, "setting=value,value,...: one table for all values");
  syntax.AddOption("--priority", options.priorities, "class=priority, instead of the workload's");
  syntax.AddOption("--seconds", options.seconds, "virtual time in seconds, instead of the workload's",
                   {.value = xschedd::OptionForm::Value::kPositive});
  syntax.AddOption("--seed", options.seed, "random seed of arrivals and durations");
  syntax.AddFlag("--json", options.json, "print JSON");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  const Result<void> done = Run(options);
  if (!done) {
    fmt::print(stderr, "simulate: {}\n", done.error().Line());
    return 2;
  }
  return 0;
}
