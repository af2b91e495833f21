#include "tools/bench/fleet/made_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/bench/simulate/random.h"

namespace xschedd::fleet {
namespace {

struct Kind {
  Space space;
  std::vector<std::string> patterns;  // one each, in equal numbers
  double part;                        // of the GPUs
  double mean_s;                      // of a job's work
  double sigma;                       // of its logarithm
  double by_day;                      // how much more often jobs come at noon, and less at midnight
  std::vector<std::uint32_t> gpus;    // one of these
  bool has_limit;
};

// The shares of a quarter of a GPU, so that two of two, or four of one, share it.
std::vector<Kind> Kinds() {
  const auto space = [](const char* name, std::uint32_t tier, int priority, std::uint32_t shards) {
    return Space{.name = name, .tier = tier, .priority = priority, .pattern = {}, .shards = shards, .limit_s = 0};
  };
  return {
      {space("serving", 3, 50, 2), {"chat", "web"}, 0.30, 36 * kHourS, 0.8, 0, {1}, false},
      {space("interactive", 2, 20, 1), {"notebook"}, 0.15, 3 * kHourS, 0.8, 0.8, {1}, true},
      {space("training", 2, 0, 0), {"train"}, 0.20, 8 * kHourS, 1.0, 0.3, {2, 4, 4, 8, 8, 16}, true},
      {space("batch", 1, -20, 2), {"train", "batch"}, 0.35, 1.5 * kHourS, 1.2, 0.3, {1}, true},
  };
}

double LogNormal(simulate::Random& random, double mean, double sigma) {
  const double normal =
      std::sqrt(-2 * std::log1p(-random.Uniform())) * std::cos(2 * std::numbers::pi * random.Uniform());
  return mean * std::exp(sigma * normal - sigma * sigma / 2);
}

}  // namespace

Trace MakeSite(const MadeSite& site) {
  Trace trace;
  const double gpus = static_cast<double>(site.size.nodes) * site.size.gpus;
  std::uint64_t seed = site.seed;
  for (const Kind& kind : Kinds()) {
    seed = simulate::Random(seed).Next();
    simulate::Random random(seed);
    const auto space = static_cast<std::uint32_t>(trace.spaces.size());
    trace.spaces.push_back(kind.space);
    double gpus_each = 0;
    for (const std::uint32_t own : kind.gpus)
      gpus_each += own / static_cast<double>(kind.gpus.size());
    const double population = site.load * gpus * kind.part / gpus_each;
    std::size_t count = 0;
    const auto add = [&](double at_s, double seconds) {
      const auto rounded = [](double s) { return std::round(s * 10) / 10; };
      Job job;
      job.name = fmt::format("{}-{}", kind.space.name, ++count);
      job.space = space;
      job.arrival_s = rounded(at_s);
      job.seconds = rounded(std::clamp(seconds, 60.0, 30 * kDayS));
      if (kind.has_limit) job.limit_s = std::ceil(job.seconds * (1.2 + 1.8 * random.Uniform()) / 600) * 600;
      job.demand.gpus = kind.gpus[random.Next() % kind.gpus.size()];
      job.priority = kind.space.priority;
      job.pattern = kind.patterns[random.Next() % kind.patterns.size()];
      if (job.demand.gpus == 1 && kind.space.shards != 0)
        job.demand = {0, std::min(kind.space.shards, site.size.shards)};
      trace.jobs.push_back(std::move(job));
    };
    // Those that run already: a part of their time is over.
    for (std::uint64_t i = 0; static_cast<double>(i) < population; ++i)
      add(0, LogNormal(random, kind.mean_s, kind.sigma) * random.Uniform());
    // A Poisson process at its highest rate, thinned.
    const double highest = population / kind.mean_s * (1 + kind.by_day);
    for (double at_s = 0;;) {
      at_s += static_cast<double>(random.Exponential(1e9 / highest)) / 1e9;
      if (at_s >= site.days * kDayS) break;
      const double now = 1 - kind.by_day * std::cos(2 * std::numbers::pi * at_s / kDayS);
      if (random.Uniform() * (1 + kind.by_day) < now) add(at_s, LogNormal(random, kind.mean_s, kind.sigma));
    }
  }
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_s < b.arrival_s; });
  return trace;
}

}  // namespace xschedd::fleet
