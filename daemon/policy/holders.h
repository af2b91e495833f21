// Which groups hold those below them while they are busy, and which only while their host waits: all whenever they are
// busy, but for those that are known not to need that (benefit.h), and those that find it out now.
//
//   - Of one priority one group tries at a time, the one that came first, and while others run beside it they run
//     beside all of that priority: an equal that held them would make two equal blocks.
//   - What a group did not do, because of an equal, is not measured.
// Thread rule: pure in meaning; an object has one user.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/policy/benefit.h"
#include "daemon/policy/roster.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

class Holders {
 public:
  // The calls of one decision, in this order. `state`, `roster` and `decision` must outlive them.
  // `measures`: else all hold, and no other call follows.
  void Begin(const State& state, const Roster& roster, bool measures, std::uint64_t now_ns, Decision& decision);
  // Each tracked group: whether it has work, whether somebody less important has some on one of its devices, whether
  // both have some on the same one, and which clients of these have, or have just had some.
  void Look(std::uint32_t group, bool busy, bool others_work, bool contended, const Others& others);
  // Who tries now, and so who holds.
  void Choose();

  bool Measures() const { return measures_; }
  // In force.
  BenefitMemory::Mode ModeOf(std::uint32_t group) const { return modes_[group]; }
  // Now, if it is busy.
  bool HoldsNow(std::uint32_t group) const { return holds_now_[group] != 0; }
  // Whether what holding gives this group is measured: not of a strict one.
  bool Measures(std::uint32_t group) const { return measures_ && BenefitOf(group).Measures(); }

  // Afterwards, each group that wants a device. `open`: it is busy and not held itself.
  void Note(std::uint32_t group, bool open);

 private:
  bool IsAboutToGoOn(std::uint32_t group) const;
  void Try();
  int PriorityOf(std::uint32_t group) const { return state_->groups[group].priority; }
  BenefitMemory& MemoryOf(std::uint32_t group) { return decision_->memory[group].benefit; }

  const State* state_ = nullptr;
  const Roster* roster_ = nullptr;
  Decision* decision_ = nullptr;
  std::uint64_t now_ns_ = 0;
  bool measures_ = false;
  const Benefit& BenefitOf(std::uint32_t group) const { return state_->groups[group].strict ? strict_ : benefit_; }

  Benefit benefit_;
  Benefit strict_;  // tolerates nothing
  std::vector<std::uint32_t> tracked_;
  std::vector<std::uint32_t> due_;
  std::vector<std::uint32_t> trying_;       // one of each priority
  std::vector<BenefitMemory::Mode> modes_;  // by group
  std::vector<std::uint8_t> holds_now_;     // likewise
  std::vector<std::uint8_t> forced_;        // likewise: it does not, for as long as an equal tries another mode
};

}  // namespace xschedd::policy
