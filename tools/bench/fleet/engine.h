// A fleet's engine as far as GPUs are concerned: which waiting job starts next, and where. Thread rule: belongs to one
// simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/bench/fleet/inventory.h"

namespace xschedd::fleet {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// A job as its engine sees it.
struct Waiting {
  std::uint32_t job = 0;  // index into Trace::jobs
  std::uint32_t tier = 0;
  double arrival_s = 0;
  double limit_s = 0;  // 0: none
  Demand demand;

  // The order of a queue: tier, then arrival.
  bool operator<(const Waiting& other) const {
    if (tier != other.tier) return tier > other.tier;
    if (arrival_s != other.arrival_s) return arrival_s < other.arrival_s;
    return job < other.job;
  }
};

class Engine {
 public:
  // Called for each job that starts; takes its place in the inventory.
  using Start = std::function<void(const Waiting& job, const Place& place)>;

  virtual ~Engine() = default;
  virtual void Submit(const Waiting& job) = 0;
  // A job that had started has ended; its place in the inventory is free again.
  virtual void End(std::uint32_t job) = 0;
  // Starts what may start now: call it after all that happened at this time.
  virtual void Pass(double now_s, const Inventory& inventory, const Start& start) = 0;
  // When it wants another pass though nothing happens.
  virtual double NextPassS() const = 0;
};

enum class EngineKind { kSlurm, kKubernetes };
enum class Placing {
  kDefault,  // Slurm: the first that fits; Kubernetes: the node of which least is allocated
  kSpread,   // Slurm: LL_SHARED_GRES, the least loaded GPU of the first node; Kubernetes: as kDefault
  kPack,     // Slurm: as kDefault; Kubernetes: MostAllocated
};

std::unique_ptr<Engine> MakeEngine(EngineKind kind, Placing placing);

// Slurm: jobs in order of their partitions' tiers, then of arrival. The first that does not fit gets a reservation
// where and when it would fit if all ran to their limits; every 30 s jobs behind it start that do not delay it
// (backfill).
std::unique_ptr<Engine> MakeSlurm(Placing placing);

// Kubernetes: pods in order of priority, then of arrival; one that does not fit stops nobody behind it, and nobody is
// preempted. Nodes that fit are scored by how much of them is allocated. Of a node's GPUs the least shared one is
// taken, as NVIDIA's device plugin does.
std::unique_ptr<Engine> MakeKubernetes(Placing placing);

}  // namespace xschedd::fleet
