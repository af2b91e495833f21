#include "tools/bench/fleet/fleet_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

namespace xschedd::fleet {
namespace {

struct End {
  double at_s;
  std::uint32_t job;
  std::uint32_t version;  // of the job's prediction: an older one is void
  bool operator>(const End& other) const { return at_s != other.at_s ? at_s > other.at_s : job > other.job; }
};

struct Gpu {
  std::vector<std::uint32_t> jobs;
  std::uint32_t mix = 0;
  double since_s = 0;
};

struct Running {
  Place place;
  double start_s = 0;
  double left_s = 0;  // of its work; of a job that does not end with it: of its time
  double at_s = 0;    // when that was so
  double rate = 0;
  std::uint32_t version = 0;
};

class Simulation {
 public:
  Simulation(const Trace& trace, const std::vector<std::uint32_t>& job_patterns, const Patterns& patterns, Mixes& mixes,
             const FleetOptions& options)
      : trace_(trace),
        job_patterns_(job_patterns),
        patterns_(patterns),
        mixes_(mixes),
        options_(options),
        inventory_(options.size),
        engine_(MakeEngine(options.engine, options.placing)),
        gpus_(inventory_.Gpus()),
        running_(trace.jobs.size()),
        is_waiting_(trace.jobs.size(), false) {
    const std::uint32_t empty = mixes_.Index({});
    for (Gpu& gpu : gpus_)
      gpu.mix = empty;
    results_.nodes = options.size.nodes;
    results_.gpus = inventory_.Gpus();
    results_.spaces.resize(trace.spaces.size());
    results_.patterns.resize(patterns.all.size());
  }

  FleetResults Run() {
    std::size_t next = 0;
    while (!results_.waits_too_long) {
      double now_s = engine_->NextPassS();
      if (next < trace_.jobs.size()) now_s = std::min(now_s, trace_.jobs[next].arrival_s);
      while (!ends_.empty() && running_[ends_.top().job].version != ends_.top().version)
        ends_.pop();  // void: nothing happens at its time
      if (!ends_.empty()) now_s = std::min(now_s, ends_.top().at_s);
      if (now_s == kNever || now_s > options_.to_s) break;
      now_s_ = std::max(now_s, now_s_);
      while (!ends_.empty() && ends_.top().at_s <= now_s_) {
        const End end = ends_.top();
        ends_.pop();
        if (running_[end.job].version == end.version) EndJob(end.job);
      }
      for (; next < trace_.jobs.size() && trace_.jobs[next].arrival_s <= now_s_; ++next)
        Submit(static_cast<std::uint32_t>(next));
      engine_->Pass(now_s_, inventory_, [this](const Waiting& job, const Place& place) { StartJob(job, place); });
      if (options_.watch) options_.watch(now_s_, inventory_);
    }
    if (options_.to_s != kNever) now_s_ = options_.to_s;
    return Finish();
  }

 private:
  // What it asks for here.
  Demand DemandOf(std::uint32_t job) const {
    const Demand& demand = trace_.jobs[job].demand;
    return demand.shards != 0 && !options_.shares ? Demand{1, 0} : demand;
  }
  const Pattern& PatternOf(std::uint32_t job) const { return patterns_.all[job_patterns_[job]]; }
  Tenant TenantOf(std::uint32_t job) const { return {job_patterns_[job], trace_.jobs[job].priority}; }
  bool IsCounted(double time_s) const { return time_s >= options_.from_s; }

  void Submit(std::uint32_t index) {
    const Job& job = trace_.jobs[index];
    is_waiting_[index] = true;
    engine_->Submit({.job = index,
                     .tier = trace_.spaces[job.space].tier,
                     .arrival_s = job.arrival_s,
                     .limit_s = job.limit_s,
                     .demand = DemandOf(index)});
  }

  void NoteWait(std::uint32_t index) {
    const Job& job = trace_.jobs[index];
    if (!IsCounted(job.arrival_s)) return;
    SpaceResult& space = results_.spaces[job.space];
    space.waits_s.push_back(now_s_ - job.arrival_s);
    space.sum_s += now_s_ - job.arrival_s;
    const std::vector<double>& most_s = options_.most_wait_s;
    if (!most_s.empty() && space.sum_s > most_s[job.space]) results_.waits_too_long = true;
    if (is_waiting_[index]) ++space.waiting;
  }

  void StartJob(const Waiting& waiting, const Place& place) {
    const std::uint32_t index = waiting.job;
    inventory_.Take(waiting.demand, place);
    is_waiting_[index] = false;
    NoteWait(index);
    ++results_.started;
    Running& job = running_[index];
    job.place = place;
    job.start_s = job.at_s = now_s_;
    job.left_s = trace_.jobs[index].seconds;
    for (const std::uint32_t gpu : place) {
      if (gpus_[gpu].jobs.empty()) ++used_gpus_;
      gpus_[gpu].jobs.push_back(index);
      ChangeMix(gpu);
    }
    results_.most_used_gpus = std::max(results_.most_used_gpus, used_gpus_);
  }

  void EndJob(std::uint32_t index) {
    Running& job = running_[index];
    ++job.version;
    for (const std::uint32_t gpu : job.place) {
      std::vector<std::uint32_t>& jobs = gpus_[gpu].jobs;
      jobs.erase(std::find(jobs.begin(), jobs.end(), index));
      if (jobs.empty()) --used_gpus_;
      ChangeMix(gpu);
    }
    inventory_.Release(DemandOf(index), job.place);
    engine_->End(index);
    if (!IsCounted(now_s_)) return;
    ++results_.ended;
    const Job& given = trace_.jobs[index];
    // A tenth of a second for rounding.
    if (given.limit_s > 0 && now_s_ - job.start_s > given.limit_s + 0.1) ++results_.past_limit;
    PatternResult& pattern = results_.patterns[job_patterns_[index]];
    ++pattern.ended;
    pattern.stretch += (now_s_ - job.start_s) / given.seconds;
  }

  // The jobs of a GPU have changed: their rates follow.
  void ChangeMix(std::uint32_t gpu_index) {
    Gpu& gpu = gpus_[gpu_index];
    Count(gpu);
    std::vector<Tenant> tenants;
    for (const std::uint32_t job : gpu.jobs)
      tenants.push_back(TenantOf(job));
    gpu.mix = mixes_.Index(std::move(tenants));
    for (const std::uint32_t index : gpu.jobs) {
      Running& job = running_[index];
      job.left_s -= (now_s_ - job.at_s) * job.rate;
      job.at_s = now_s_;
      job.rate = PatternOf(index).ends_with_work ? mixes_.At(gpu.mix).Of(TenantOf(index)).rate : 1;
      ++job.version;
      if (job.rate > 0) ends_.push({now_s_ + std::max(job.left_s, 0.0) / job.rate, index, job.version});
    }
  }

  // Adds the GPU's time until now to that of its mix.
  void Count(Gpu& gpu) {
    const double since_s = std::max(gpu.since_s, options_.from_s);
    gpu.since_s = now_s_;
    if (now_s_ <= since_s) return;
    mix_s_.resize(std::max<std::size_t>(mix_s_.size(), mixes_.Count()), 0.0);
    mix_s_[gpu.mix] += now_s_ - since_s;
  }

  FleetResults Finish() {
    for (Gpu& gpu : gpus_)
      Count(gpu);
    for (std::uint32_t job = 0; job < trace_.jobs.size(); ++job)
      if (is_waiting_[job]) NoteWait(job);
    for (SpaceResult& space : results_.spaces)
      std::sort(space.waits_s.begin(), space.waits_s.end());
    results_.counted_s = now_s_ - options_.from_s;
    for (std::uint32_t i = 0; i < mix_s_.size(); ++i) {
      const Mix& mix = mixes_.At(i);
      if (mix_s_[i] == 0 || mix.parts.empty()) continue;
      ++results_.mixes;
      results_.used_gpu_s += mix_s_[i];
      results_.busy_gpu_s += mix_s_[i] * mix.busy;
      for (const Part& part : mix.parts) {
        PatternResult& pattern = results_.patterns[part.tenant.pattern];
        pattern.gpu_s += mix_s_[i] * part.count;
        pattern.work_s += mix_s_[i] * part.count * part.rate;
        pattern.latencies.Add(part.latencies, mix_s_[i]);
      }
    }
    return std::move(results_);
  }

  const Trace& trace_;
  const std::vector<std::uint32_t>& job_patterns_;
  const Patterns& patterns_;
  Mixes& mixes_;
  const FleetOptions& options_;
  Inventory inventory_;
  std::unique_ptr<Engine> engine_;
  std::vector<Gpu> gpus_;
  std::vector<Running> running_;  // of each job
  std::vector<bool> is_waiting_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<double> mix_s_;  // counted GPU time of each mix
  std::uint32_t used_gpus_ = 0;
  double now_s_ = 0;
  FleetResults results_;
};

}  // namespace

double SpaceResult::MeanS() const {
  return waits_s.empty() ? 0 : sum_s / static_cast<double>(waits_s.size());
}

double SpaceResult::QuantileS(double fraction) const {
  if (waits_s.empty()) return std::nan("");
  const double rank = std::ceil(fraction * static_cast<double>(waits_s.size()));
  return waits_s[std::min(static_cast<std::size_t>(std::max(rank, 1.0)), waits_s.size()) - 1];
}

FleetResults SimulateFleet(const Trace& trace, const std::vector<std::uint32_t>& job_patterns, const Patterns& patterns,
                           Mixes& mixes, const FleetOptions& options) {
  return Simulation(trace, job_patterns, patterns, mixes, options).Run();
}

Result<std::vector<std::uint32_t>> JobPatterns(const Trace& trace, const Patterns& patterns, const FleetSize& size) {
  const Inventory inventory(size);
  std::vector<std::uint32_t> indices;
  for (const Job& job : trace.jobs) {
    const auto index = patterns.Find(job.pattern);
    if (!index) {
      return Fail(fmt::format("job \"{}\": there is no pattern \"{}\"", job.name, job.pattern),
                  "name a client of the patterns' file");
    }
    if (!inventory.CanHold(job.demand)) {
      return Fail(fmt::format("job \"{}\" asks for {}, and the fleet has {} nodes of {} GPUs of {} shards", job.name,
                              job.demand.shards != 0 ? fmt::format("{} shards of one GPU", job.demand.shards)
                                                     : fmt::format("{} GPUs", job.demand.gpus),
                              size.nodes, size.gpus, size.shards),
                  "give larger --nodes, --gpus or --shards, or leave the job out");
    }
    indices.push_back(*index);
  }
  return indices;
}

}  // namespace xschedd::fleet
