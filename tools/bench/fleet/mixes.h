// What tenants of one GPU cost each other: each distinct mix of them is simulated once, by the node simulator with the
// daemon's own policy code, and remembered. A fleet has many GPUs and few mixes. Thread rule: belongs to one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tools/bench/fleet/patterns.h"
#include "tools/bench/simulate/parameters.h"

namespace xschedd::fleet {

struct Tenant {
  std::uint32_t pattern = 0;  // index into Patterns::all
  int priority = 0;
  auto operator<=>(const Tenant&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

// Latencies as counts in buckets that are one percent wide.
class Latencies {
 public:
  void Add(std::uint64_t ns, double count);
  // Adds the other's counts, each `times`.
  void Add(const Latencies& other, double times);
  bool IsEmpty() const { return counts_.empty(); }
  // The middle of the bucket of this rank, in ms; NaN without counts.
  double QuantileMs(double fraction) const;

 private:
  std::map<int, double> counts_;  // by bucket
};

// One kind of tenant in a mix.
struct Part {
  Tenant tenant;
  std::uint32_t count = 0;  // of such tenants
  double rate = 0;          // of each one's work, relative to alone on a GPU
  Latencies latencies;      // of all of them, per second
};

struct Mix {
  std::vector<Part> parts;  // in order of tenants
  double busy = 0;          // part of the time in which a kernel runs on the GPU

  const Part& Of(const Tenant& tenant) const;
};

class Mixes {
 public:
  // `warm_up_s` of each simulation is not counted: in it the daemon finds out what holding gains. `patterns` must
  // outlive this.
  Mixes(const Patterns& patterns, const simulate::Parameters& parameters, double warm_up_s, double seconds)
      : patterns_(patterns), parameters_(parameters), warm_up_s_(warm_up_s), seconds_(seconds) {}

  // The index of the mix; `tenants` in any order. No tenant: a mix in which nothing runs.
  std::uint32_t Index(std::vector<Tenant> tenants);
  const Mix& At(std::uint32_t index) const { return all_[index]; }
  std::uint32_t Count() const { return static_cast<std::uint32_t>(all_.size()); }

  // The pattern alone on a GPU, in the same time.
  const Mix& Alone(std::uint32_t pattern);

 private:
  Mix Simulate(const std::vector<Tenant>& tenants);

  const Patterns& patterns_;
  simulate::Parameters parameters_;
  double warm_up_s_;
  double seconds_;
  std::map<std::vector<Tenant>, std::uint32_t> by_tenants_;
  std::vector<Mix> all_;
  std::map<std::uint32_t, std::pair<double, Mix>> alone_;  // by pattern: kernels, and the mix
};

}  // namespace xschedd::fleet
