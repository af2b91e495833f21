#include "tools/bench/fleet/compare.h"

#include <algorithm>
#include <future>

namespace xschedd::fleet {
namespace {

// A mean of so much more is no longer wait: jobs are scheduled in steps of 30 s.
constexpr double kSameWait = 1.01;
constexpr double kSameWaitS = 30;

class Runner {
 public:
  Runner(const Trace& trace, const std::vector<std::uint32_t>& job_patterns, const Patterns& patterns,
         const CompareOptions& options, const std::string& name)
      : trace_(trace),
        job_patterns_(job_patterns),
        patterns_(patterns),
        options_(options.fleet),
        mixes_(Make(options, name)) {
    options_.shares = name != "exclusive";
    way_.name = name;
  }

  void Run() { way_.results = SimulateFleet(trace_, job_patterns_, patterns_, mixes_, options_); }

  // As Way::needed_nodes.
  void FindNeeded(const std::vector<double>& most_wait_s) {
    std::uint32_t enough = options_.size.nodes;
    if (!IsEnough(enough, most_wait_s)) return;
    std::uint32_t few = 0;
    for (const Job& job : trace_.jobs)
      few = std::max(few, (job.demand.gpus + options_.size.gpus - 1) / options_.size.gpus);
    // Fewer GPUs than work all the time, or exclusively than have a job, cannot do the same; a tenth for what ends
    // later.
    const FleetResults& all = way_.results;
    const double busy_gpus = (options_.shares ? all.busy_gpu_s : all.used_gpu_s) / all.counted_s;
    few = std::max(few, static_cast<std::uint32_t>(0.9 * busy_gpus / options_.size.gpus));
    few = std::max(few, 1u) - 1;
    const std::uint32_t step = std::max(options_.size.nodes / 100, 1u);
    while (enough - few > step) {
      const std::uint32_t middle = few + (enough - few) / 2;
      (IsEnough(middle, most_wait_s) ? enough : few) = middle;
    }
    way_.needed_nodes = enough;
  }

  // Of each space, all waits together that count as no longer than these.
  static std::vector<double> MostWaits(const FleetResults& results) {
    std::vector<double> most_s;
    for (const SpaceResult& space : results.spaces)
      most_s.push_back(space.sum_s * kSameWait + kSameWaitS * static_cast<double>(space.waits_s.size()));
    return most_s;
  }

  Way Take() {
    way_.simulated_mixes = mixes_.Count();
    return std::move(way_);
  }
  const FleetResults& Results() const { return way_.results; }
  Mixes& AllMixes() { return mixes_; }

 private:
  Mixes Make(const CompareOptions& options, const std::string& name) const {
    simulate::Parameters parameters = options.parameters;
    parameters.unscheduled = name != "claims";
    return {patterns_, parameters, options.mix_warm_up_s, options.mix_seconds};
  }

  bool IsEnough(std::uint32_t nodes, const std::vector<double>& most_wait_s) {
    FleetOptions options = options_;
    options.size.nodes = nodes;
    options.most_wait_s = most_wait_s;
    return !SimulateFleet(trace_, job_patterns_, patterns_, mixes_, options).waits_too_long;
  }

  const Trace& trace_;
  const std::vector<std::uint32_t>& job_patterns_;
  const Patterns& patterns_;
  FleetOptions options_;
  Mixes mixes_;
  Way way_;
};

void ForAll(std::vector<Runner>& runners, const std::function<void(Runner&)>& work) {
  std::vector<std::future<void>> done;
  done.reserve(runners.size());
  for (Runner& runner : runners)
    done.push_back(std::async(std::launch::async, [&] { work(runner); }));
  for (std::future<void>& one : done)
    one.get();
}

}  // namespace

Result<Comparison> Compare(const Trace& trace, const Patterns& patterns, const CompareOptions& options) {
  const Result<std::vector<std::uint32_t>> job_patterns = JobPatterns(trace, patterns, options.fleet.size);
  if (!job_patterns) return tl::unexpected(job_patterns.error());
  std::vector<Runner> runners;
  for (const char* const name : {"exclusive", "shared", "claims"})
    runners.emplace_back(trace, *job_patterns, patterns, options, name);
  ForAll(runners, [](Runner& runner) { runner.Run(); });
  if (options.finds_needed) {
    const std::vector<double> most_wait_s = Runner::MostWaits(runners[0].Results());
    ForAll(runners, [&](Runner& runner) { runner.FindNeeded(most_wait_s); });
  }
  Comparison comparison;
  for (std::uint32_t i = 0; i < patterns.all.size(); ++i)
    comparison.alone.push_back(runners[0].AllMixes().Alone(i).parts[0].latencies);
  for (Runner& runner : runners)
    comparison.ways.push_back(runner.Take());
  return comparison;
}

}  // namespace xschedd::fleet
