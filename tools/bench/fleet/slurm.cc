#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/bench/fleet/engine.h"

namespace xschedd::fleet {
namespace {

constexpr double kBackfillS = 30;           // bf_interval
constexpr std::size_t kBackfillJobs = 500;  // bf_max_job_test

// Where and when the first job of the queue would fit.
struct Reservation {
  double at_s = kNever;
  std::vector<bool> nodes;
};

class Slurm : public Engine {
 public:
  explicit Slurm(Inventory::GpuOrder order) : order_(order) {}

  void Submit(const Waiting& job) override {
    queue_.insert(job);
    has_changed_ = true;
  }

  void End(std::uint32_t job) override {
    const auto running = running_.find(job);
    by_end_.erase({running->second.end_s, job});
    running_.erase(running);
    has_changed_ = true;
  }

  void Pass(double now_s, const Inventory& inventory, const Start& start) override {
    while (!queue_.empty()) {
      const Waiting job = *queue_.begin();
      const auto place = Find(inventory, job.demand, {});
      if (!place) break;
      queue_.erase(queue_.begin());
      Begin(now_s, job, *place, start);
    }
    if (now_s < next_backfill_s_ || !has_changed_) return;
    has_changed_ = false;
    next_backfill_s_ = (std::floor(now_s / kBackfillS) + 1) * kBackfillS;
    if (queue_.size() > 1) Backfill(now_s, inventory, start);
  }

  double NextPassS() const override { return has_changed_ && queue_.size() > 1 ? next_backfill_s_ : kNever; }

 private:
  struct Running {
    double end_s;  // by its limit
    Demand demand;
    Place place;
  };

  std::optional<Place> Find(const Inventory& inventory, const Demand& demand,
                            const Inventory::NodeFilter& allows) const {
    return inventory.Find(demand, Inventory::NodeOrder::kFirst, order_, allows);
  }

  void Begin(double now_s, const Waiting& job, const Place& place, const Start& start) {
    const double end_s = job.limit_s > 0 ? now_s + job.limit_s : kNever;
    running_.emplace(job.job, Running{end_s, job.demand, place});
    by_end_.emplace(end_s, job.job);
    start(job, place);
  }

  // What runs on after its limit is expected to end until the next backfill.
  Reservation Reserve(double now_s, Inventory inventory, const Demand& demand) const {
    Reservation reservation{.at_s = kNever, .nodes = std::vector<bool>(inventory.Size().nodes, false)};
    for (const auto& [end_s, job] : by_end_) {
      if (end_s == kNever) break;
      const Running& running = running_.at(job);
      inventory.Release(running.demand, running.place);
      // It did not fit before, so it fits on a node of these or nowhere, unless it needs several nodes.
      const std::uint32_t last = inventory.NodeOf(running.place.back());
      std::uint32_t node = inventory.NodeOf(running.place.front());
      while (node < last && !inventory.Fits(node, demand))
        ++node;
      if (!inventory.Fits(node, demand)) continue;
      const auto place = Find(inventory, demand, {});
      reservation.at_s = std::max(end_s, now_s + kBackfillS);
      for (const std::uint32_t gpu : *place)
        reservation.nodes[inventory.NodeOf(gpu)] = true;
      break;
    }
    return reservation;
  }

  void Backfill(double now_s, const Inventory& inventory, const Start& start) {
    const Reservation reservation = Reserve(now_s, inventory, queue_.begin()->demand);
    // Demands that fit nowhere, with and without the reserved nodes.
    std::vector<Demand> fail[2];
    std::size_t tested = 0;
    for (auto job = std::next(queue_.begin()); job != queue_.end() && tested < kBackfillJobs; ++tested) {
      const bool is_short = job->limit_s > 0 && now_s + job->limit_s <= reservation.at_s;
      std::vector<Demand>& failed = fail[is_short ? 1 : 0];
      std::optional<Place> place;
      if (std::find(failed.begin(), failed.end(), job->demand) == failed.end()) {
        place = Find(
            inventory, job->demand,
            is_short ? Inventory::NodeFilter{} : [&](std::uint32_t node) { return !reservation.nodes[node]; });
        if (!place) failed.push_back(job->demand);
      }
      if (!place) {
        ++job;
        continue;
      }
      const Waiting begins = *job;
      job = queue_.erase(job);
      Begin(now_s, begins, *place, start);
    }
  }

  Inventory::GpuOrder order_;
  std::set<Waiting> queue_;
  std::map<std::uint32_t, Running> running_;           // by job
  std::set<std::pair<double, std::uint32_t>> by_end_;  // and job
  double next_backfill_s_ = 0;
  bool has_changed_ = false;  // since the last backfill
};

}  // namespace

std::unique_ptr<Engine> MakeSlurm(Placing placing) {
  return std::make_unique<Slurm>(placing == Placing::kSpread ? Inventory::GpuOrder::kLeastAllocated
                                                             : Inventory::GpuOrder::kFirst);
}

}  // namespace xschedd::fleet
