#include "tools/bench/fleet/mixes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tools/bench/simulate/simulation.h"

namespace xschedd::fleet {
namespace {

const double kBucket = std::log(1.01);

// A workload of one device with these tenants; equal tenants have one class.
simulate::Workload MakeWorkload(const Patterns& patterns, const std::vector<Tenant>& tenants) {
  simulate::Workload workload;
  workload.name = "mix";
  workload.kind = patterns.device;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    simulate::ClientSpec client = patterns.all[tenants[i].pattern].client;
    client.class_name = std::to_string(tenants[i].pattern) + "/" + std::to_string(tenants[i].priority);
    client.name = client.class_name + "/" + std::to_string(i);
    client.priority = tenants[i].priority;
    workload.clients.push_back(std::move(client));
  }
  return workload;
}

// What happened in the time after the warm-up: the difference of two runs, of which the shorter is the beginning of the
// longer.
struct Counted {
  std::vector<double> kernels;  // of each class
  std::vector<std::vector<std::uint64_t>> latencies_ns;
  double busy_ns = 0;
};

Counted CountAfterWarmUp(simulate::Workload workload, const simulate::Parameters& parameters, double warm_up_s,
                         double seconds) {
  workload.length_ns = static_cast<std::uint64_t>((warm_up_s + seconds) * 1e9);
  const simulate::Results whole = simulate::Simulate(workload, parameters);
  simulate::Results before;
  if (warm_up_s > 0) {
    workload.length_ns = static_cast<std::uint64_t>(warm_up_s * 1e9);
    before = simulate::Simulate(workload, parameters);
  } else {
    before.classes.resize(whole.classes.size());
    before.device_busy_ns = {0};
  }
  Counted counted;
  for (std::size_t i = 0; i < whole.classes.size(); ++i) {
    counted.kernels.push_back(static_cast<double>(whole.classes[i].kernels - before.classes[i].kernels));
    const std::vector<std::uint64_t>& all = whole.classes[i].latencies_ns;
    const std::vector<std::uint64_t>& early = before.classes[i].latencies_ns;
    std::set_difference(all.begin(), all.end(), early.begin(), early.end(),
                        std::back_inserter(counted.latencies_ns.emplace_back()));
  }
  counted.busy_ns = static_cast<double>(whole.device_busy_ns[0] - before.device_busy_ns[0]);
  return counted;
}

}  // namespace

void Latencies::Add(std::uint64_t ns, double count) {
  counts_[static_cast<int>(std::floor(std::log(static_cast<double>(std::max<std::uint64_t>(ns, 1))) / kBucket))] +=
      count;
}

void Latencies::Add(const Latencies& other, double times) {
  for (const auto& [bucket, count] : other.counts_)
    counts_[bucket] += count * times;
}

double Latencies::QuantileMs(double fraction) const {
  double all = 0;
  for (const auto& [bucket, count] : counts_)
    all += count;
  if (all <= 0) return std::numeric_limits<double>::quiet_NaN();
  double seen = 0;
  for (const auto& [bucket, count] : counts_) {
    seen += count;
    if (seen >= fraction * all) return std::exp((bucket + 0.5) * kBucket) / 1e6;
  }
  return std::exp((counts_.rbegin()->first + 0.5) * kBucket) / 1e6;  // by rounding
}

const Part& Mix::Of(const Tenant& tenant) const {
  return *std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.tenant == tenant; });
}

std::uint32_t Mixes::Index(std::vector<Tenant> tenants) {
  std::sort(tenants.begin(), tenants.end());
  const auto known = by_tenants_.find(tenants);
  if (known != by_tenants_.end()) return known->second;
  all_.push_back(tenants.empty() ? Mix{} : Simulate(tenants));
  const auto index = static_cast<std::uint32_t>(all_.size() - 1);
  by_tenants_.emplace(std::move(tenants), index);
  return index;
}

const Mix& Mixes::Alone(std::uint32_t pattern) {
  const auto known = alone_.find(pattern);
  if (known != alone_.end()) return known->second.second;
  const Counted counted = CountAfterWarmUp(MakeWorkload(patterns_, {{pattern, 0}}), parameters_, warm_up_s_, seconds_);
  Mix mix{{Part{.tenant = {pattern, 0}, .count = 1, .rate = 1, .latencies = {}}}, counted.busy_ns / (seconds_ * 1e9)};
  if (patterns_.all[pattern].has_latency) {
    for (const std::uint64_t ns : counted.latencies_ns[0])
      mix.parts[0].latencies.Add(ns, 1 / seconds_);
  }
  return alone_.emplace(pattern, std::pair(counted.kernels[0], std::move(mix))).first->second.second;
}

Mix Mixes::Simulate(const std::vector<Tenant>& tenants) {
  if (tenants.size() == 1) {
    Mix mix = Alone(tenants[0].pattern);
    mix.parts[0].tenant = tenants[0];
    return mix;
  }
  const Counted counted = CountAfterWarmUp(MakeWorkload(patterns_, tenants), parameters_, warm_up_s_, seconds_);
  Mix mix;
  for (const Tenant& tenant : tenants) {
    if (mix.parts.empty() || mix.parts.back().tenant != tenant)
      mix.parts.push_back({.tenant = tenant, .latencies = {}});
    ++mix.parts.back().count;
  }
  for (std::size_t i = 0; i < mix.parts.size(); ++i) {
    Part& part = mix.parts[i];
    Alone(part.tenant.pattern);
    const double alone = alone_.at(part.tenant.pattern).first;
    part.rate = alone > 0 ? counted.kernels[i] / part.count / alone : 1;
    if (!patterns_.all[part.tenant.pattern].has_latency) continue;
    for (const std::uint64_t ns : counted.latencies_ns[i])
      part.latencies.Add(ns, 1 / seconds_);
  }
  mix.busy = counted.busy_ns / (seconds_ * 1e9);
  return mix;
}

}  // namespace xschedd::fleet
