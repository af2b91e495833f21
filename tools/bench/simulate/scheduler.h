// The daemon's part in virtual time: what lanes report, the policy's decision, and the resulting gates. Devices that
// groups connect form a component, which is decided as a whole; components are independent. Thread rule: belongs to one
// simulation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/policy/decide.h"
#include "daemon/registry/burst_clock.h"
#include "tools/bench/simulate/event_queue.h"
#include "tools/bench/simulate/lane.h"
#include "tools/bench/simulate/parameters.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

class Scheduler {
 public:
  // All must outlive the scheduler. Gives each lane its component and tenant.
  Scheduler(const Workload& workload, const Parameters& parameters, std::vector<Lane>& lanes, EventQueue& events);

  // A lane's level, deadline or gate has changed: schedules a decision after the decision's latency.
  void Touch(const Lane& lane, std::uint64_t now_ns);

  // Handlers of kDecide and kLook.
  void Decide(std::uint32_t component, std::uint64_t now_ns);
  void DecideIfDue(std::uint32_t component, std::uint64_t now_ns);

  // Time until now with work and a shut gate, and with an open gate beside a more important client.
  std::uint64_t HeldNs(const Lane& lane, std::uint64_t now_ns) const;
  std::uint64_t BesideNs(const Lane& lane, std::uint64_t now_ns) const;

  std::uint64_t Decisions() const { return decisions_; }
  std::uint64_t GateChanges() const { return gate_changes_; }

 private:
  class Stopwatch {
   public:
    // Starts or stops; returns how long it ran, if it stops now.
    std::uint64_t Run(bool goes, std::uint64_t now_ns) {
      std::uint64_t ended = 0;
      if (!goes && since_ns_ != policy::kNever) {
        ended = now_ns - std::min(since_ns_, now_ns);
        sum_ns_ += ended;
        since_ns_ = policy::kNever;
      }
      if (goes && since_ns_ == policy::kNever) since_ns_ = now_ns;
      return ended;
    }
    bool IsRunning() const { return since_ns_ != policy::kNever; }
    std::uint64_t SinceNs() const { return IsRunning() ? since_ns_ : 0; }
    std::uint64_t SumNs(std::uint64_t now_ns) const { return sum_ns_ + (IsRunning() ? now_ns - since_ns_ : 0); }

   private:
    std::uint64_t since_ns_ = policy::kNever;
    std::uint64_t sum_ns_ = 0;
  };
  // What the daemon records about a lane.
  struct Account {
    std::uint64_t seen_ns = 0;   // of Lane::published_ns at the last decision
    std::uint64_t launched = 0;  // of Lane::launched, likewise
    BurstClock burst;
    Stopwatch held;    // with work and a shut gate
    Stopwatch beside;  // with an open one beside a more important client
  };
  struct Component {
    policy::State state;
    std::map<std::string, std::uint32_t> owners;  // their numbers in state.groups
    std::vector<std::uint32_t> lanes;             // of each tenant
    std::vector<Account> accounts;                // of each tenant
    std::uint64_t next_look_ns = policy::kNever;
    std::uint64_t look_event_ns = policy::kNever;  // the earliest kLook on its way
    bool is_touched = false;                       // a kDecide is on its way
  };

  void Connect(const Workload& workload);
  void Observe(Component& component, std::uint64_t now_ns);
  // True if a busy lane has become tracked, whose level counts from now on.
  bool Apply(Component& component, const policy::Decision& decision, std::uint64_t now_ns);

  const Parameters& parameters_;
  std::vector<Lane>& lanes_;
  EventQueue& events_;
  std::vector<Component> components_;
  policy::Decider decider_;
  std::uint64_t decisions_ = 0;
  std::uint64_t gate_changes_ = 0;
};

}  // namespace xschedd::simulate
