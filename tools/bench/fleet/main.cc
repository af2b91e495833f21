// `fleet`: a trace of jobs on the nodes of a fleet, with GPUs of their own and shared.
// docs/contributing/fleet-simulator.md. Thread rule: main thread; Compare starts others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "common/command_syntax.h"
#include "tools/bench/fleet/compare.h"
#include "tools/bench/fleet/import.h"
#include "tools/bench/fleet/made_site.h"
#include "tools/bench/fleet/report.h"
#include "tools/bench/simulate/parameters.h"

namespace {

using namespace xschedd::fleet;
using xschedd::Fail;
using xschedd::Result;

struct Options {
  std::vector<std::string> traces;
  std::string from_sacct;
  std::string from_pods;
  std::string save;
  std::uint32_t nodes = 1000;
  std::uint32_t gpus = 8;
  std::uint32_t shards = 4;
  std::string engine = "slurm";
  std::string place = "default";
  std::string patterns = "time-slices";
  std::string policy = "priority";
  std::vector<std::string> settings;
  double days = 3;
  double warm_up_days = -1;
  double load = 1.0;
  std::uint64_t seed = 1;
  double mix_seconds = 120;
  bool no_needed = false;
  bool json = false;
  std::string results;
};

// Of the checkout that this was built from.
std::string Commit() {
  const std::string command =
      "git -C '" XSCHEDD_SOURCE "' describe --always --dirty=-changed --exclude '*' 2>/dev/null";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[100] = "";
  if (!pipe || std::fgets(line, sizeof line, pipe.get()) == nullptr) return "unknown";
  std::string commit = line;
  while (!commit.empty() && commit.back() == '\n')
    commit.pop_back();
  return commit;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

template <typename Value>
Result<Value> Choose(const std::string& option, const std::string& text, const std::map<std::string, Value>& choices) {
  const auto found = choices.find(text);
  if (found != choices.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices)
    names.push_back(name);
  return Fail(fmt::format("{} \"{}\" is not known", option, text), fmt::format("there are {}", fmt::join(names, ", ")));
}

Result<Patterns> LoadPatterns(const std::string& name) {
  const bool is_own = name.find('/') != std::string::npos || name.find('.') != std::string::npos;
  const std::string path = is_own ? name : XSCHEDD_SOURCE "/tools/bench/fleet/patterns/" + name + ".jsonl";
  std::ifstream file(path);
  if (!file)
    return Fail(fmt::format("cannot read {}", path), "give time-slices, side-by-side or the path of a workload");
  return ReadPatterns(file, path);
}

Result<Trace> LoadTrace(const Options& options) {
  Trace trace;
  const auto open = [](const std::string& path) { return std::ifstream(path); };
  const auto unreadable = [](const std::string& path) {
    return Fail(fmt::format("cannot read {}", path),
                "give a file as docs/contributing/fleet-simulator.md describes it");
  };
  if (!options.from_sacct.empty() || !options.from_pods.empty()) {
    if (!options.traces.empty()) return Fail("a trace and records to import were given", "save what is imported first");
    const std::string& path = options.from_sacct.empty() ? options.from_pods : options.from_sacct;
    std::ifstream file = open(path);
    if (!file) return unreadable(path);
    Result<Imported> imported = options.from_sacct.empty() ? FromPods(file, path) : FromSacct(file, path);
    if (!imported) return tl::unexpected(imported.error());
    fmt::print(stderr, "fleet: {} jobs; {} records without GPUs or without a run were left out\n",
               imported->trace.jobs.size(), imported->left_out);
    return std::move(imported->trace);
  }
  for (const std::string& path : options.traces) {
    std::ifstream file = open(path);
    if (!file) return unreadable(path);
    if (Result<void> done = ReadTrace(file, path, trace); !done) return tl::unexpected(done.error());
  }
  if (options.traces.empty()) {
    return MakeSite({.size = {options.nodes, options.gpus, options.shards},
                     .days = options.days,
                     .load = options.load,
                     .seed = options.seed});
  }
  if (Result<void> done = FinishTrace(trace); !done) return tl::unexpected(done.error());
  return trace;
}

Result<CompareOptions> MakeOptions(const Options& options, const Trace& trace) {
  CompareOptions compare;
  compare.fleet.size = {options.nodes, options.gpus, options.shards};
  const Result<EngineKind> engine = Choose<EngineKind>(
      "--engine", options.engine, {{"slurm", EngineKind::kSlurm}, {"kubernetes", EngineKind::kKubernetes}});
  if (!engine) return tl::unexpected(engine.error());
  compare.fleet.engine = *engine;
  const Result<Placing> placing =
      Choose<Placing>("--place", options.place,
                      {{"default", Placing::kDefault}, {"spread", Placing::kSpread}, {"pack", Placing::kPack}});
  if (!placing) return tl::unexpected(placing.error());
  compare.fleet.placing = *placing;
  const bool is_made = options.traces.empty() && options.from_sacct.empty() && options.from_pods.empty();
  compare.fleet.from_s = (options.warm_up_days >= 0 ? options.warm_up_days : is_made ? options.days / 3 : 0) * kDayS;
  compare.fleet.to_s = is_made ? options.days * kDayS : trace.jobs.back().arrival_s;
  if (compare.fleet.from_s >= compare.fleet.to_s) {
    return Fail(fmt::format("the warm-up of {:g} days leaves no time: the last job comes after {:g}",
                            compare.fleet.from_s / kDayS, compare.fleet.to_s / kDayS),
                "give a shorter --warm-up-days");
  }
  const auto policy = xschedd::policy::NameFrom(options.policy);
  if (!policy) {
    return Fail(fmt::format("there is no policy \"{}\"", options.policy),
                fmt::format("there are {}", fmt::join(xschedd::policy::NameTexts(), ", ")));
  }
  compare.parameters.settings.name = *policy;
  compare.parameters.seed = options.seed;
  for (const std::string& text : options.settings) {
    if (Result<void> set = xschedd::simulate::SetByText(compare.parameters, text); !set)
      return tl::unexpected(set.error());
  }
  compare.mix_seconds = options.mix_seconds;
  compare.finds_needed = !options.no_needed;
  return compare;
}

Result<void> Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return Fail(fmt::format("cannot write {}", path), "give another path");
  return {};
}

Result<void> Run(const Options& options, const std::string& command) {
  const Result<Patterns> patterns = LoadPatterns(options.patterns);
  if (!patterns) return tl::unexpected(patterns.error());
  const Result<Trace> trace = LoadTrace(options);
  if (!trace) return tl::unexpected(trace.error());
  if (!options.save.empty()) {
    std::ofstream file(options.save);
    WriteTrace(*trace, file);
    file.close();
    if (!file) return Fail(fmt::format("cannot write {}", options.save), "give --save another path");
    return {};
  }
  const Result<CompareOptions> compare = MakeOptions(options, *trace);
  if (!compare) return tl::unexpected(compare.error());
  const Result<Comparison> comparison = Compare(*trace, *patterns, *compare);
  if (!comparison) return tl::unexpected(comparison.error());
  std::vector<std::string> names;
  for (const std::string& path : options.traces)
    names.push_back(path.substr(path.rfind('/') + 1));
  const Subject subject{
      .trace = names.empty() ? fmt::format("made site, load {:g}, seed {}", options.load, options.seed)
                             : fmt::format("{}", fmt::join(names, ", ")),
      .patterns = options.patterns.substr(options.patterns.rfind('/') + 1),
      .engine = options.engine,
      .placing = options.place,
      .policy = options.policy,
      .commit = Commit(),
      .date = Today(),
      .jobs = trace->jobs.size(),
      .options = *compare,
  };
  const std::string json = ToJson(subject, *trace, *patterns, *comparison).dump(1) + "\n";
  if (!options.results.empty()) {
    const std::string name = options.results.substr(options.results.rfind('/') + 1) + ".json";
    if (Result<void> done = Write(options.results + ".json", json); !done) return done;
    const std::string page = Page(subject, *trace, *patterns, *comparison, command, name);
    if (Result<void> done = Write(options.results + ".md", page); !done) return done;
  }
  fmt::print("{}", options.json ? json : Table(subject, *trace, *patterns, *comparison));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  xschedd::CommandSyntax syntax(
      "Shows what sharing GPUs would give a fleet: a trace of jobs, placed as Slurm or Kubernetes places them, with "
      "GPUs of "
      "their own, shared, and shared by xschedd's claims. Without a trace: a made site.");
  const xschedd::OptionForm positive{.shows_default = true, .value = xschedd::OptionForm::Value::kPositive};
  const xschedd::OptionForm shown{.shows_default = true};
  syntax.AddOption("trace", options.traces, "files of JSON lines (docs/contributing/fleet-simulator.md)");
  syntax.AddOption("--from-sacct", options.from_sacct, "import the output of sacct --parsable2 instead");
  syntax.AddOption("--from-pods", options.from_pods, "import the output of kubectl get pods -A -o json instead");
  syntax.AddOption("--save", options.save, "write the trace to this file and simulate nothing");
  syntax.AddOption("--nodes", options.nodes, "nodes of the fleet", positive);
  syntax.AddOption("--gpus", options.gpus, "GPUs of a node", positive);
  syntax.AddOption("--shards", options.shards, "shards of a GPU", positive);
  syntax.AddOption("--engine", options.engine, "slurm or kubernetes", shown);
  syntax.AddOption("--place", options.place,
                   "default; spread: LL_SHARED_GRES of Slurm; pack: MostAllocated of Kubernetes", shown);
  syntax.AddOption("--patterns", options.patterns, "time-slices, side-by-side, or the path of a workload", shown);
  syntax.AddOption("--policy", options.policy, "the daemon's policy", shown);
  syntax.AddOption(
      "--set", options.settings,
      fmt::format("setting=value; repeat for several. There are {}", fmt::join(xschedd::simulate::Names(), ", ")));
  syntax.AddOption("--days", options.days, "length of a made site's trace", positive);
  syntax.AddOption("--warm-up-days", options.warm_up_days,
                   "do not count this time at the beginning: of a made site a third, otherwise 0");
  syntax.AddOption("--load", options.load, "GPUs that a made site's jobs need on average, relative to those there are",
                   positive);
  syntax.AddOption("--seed", options.seed, "random seed of a made site, and of the clients on a GPU", shown);
  syntax.AddOption("--mix-seconds", options.mix_seconds, "how long each mix of jobs on a GPU is simulated", positive);
  syntax.AddFlag("--no-needed", options.no_needed,
                 "do not look for the GPUs that are needed, which takes most of the time");
  syntax.AddOption("--results", options.results, "write PATH.json and the page PATH.md, too", {.placeholder = "PATH"});
  syntax.AddFlag("--json", options.json, "print JSON");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  std::string command = "./dev bench fleet";
  for (int i = 1; i < argc; ++i)
    command += std::string(" ") + argv[i];
  const Result<void> done = Run(options, command);
  if (!done) {
    fmt::print(stderr, "fleet: {}\n", done.error().Line());
    return 2;
  }
  return 0;
}
