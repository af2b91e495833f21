// Which groups hold those below them while they are busy, and which from a part of a burst on: all from its beginning,
// but for those that are known not to need that (benefit.h), and those that find it out now.
//
//   - Of one priority one group tries at a time, the one that came first, and while others run beside it they run
//     beside all of that priority: an equal that held them would make two equal blocks.
//   - What a group did not do, because of an equal or because others had to be held all the same, is not measured.
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
  // Each tracked group: whether it has work, and whether somebody less important has some on one of its devices.
  void Look(std::uint32_t group, bool busy, bool contended);
  // Who tries now, and so who holds.
  void Choose();

  bool Measures() const { return measures_; }
  // Sooner or later in a burst.
  bool Holds(std::uint32_t group) const { return holds_[group] != Hold::kNot; }
  // Now, if it is busy.
  bool HoldsNow(std::uint32_t group) const { return holds_[group] == Hold::kNow; }

  // Afterwards, each group that wants a device. `open`: it is busy and not held itself; `held_others`: also where it
  // lets them run beside it.
  void Note(std::uint32_t group, bool open, bool held_others);

 private:
  enum class Hold : std::uint8_t { kNot, kLater, kNow };
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
  std::vector<std::uint32_t> trying_;  // one of each priority
  std::vector<Hold> holds_;            // by group
  std::vector<std::uint8_t> forced_;   // likewise: it does not, for as long as an equal tries another mode
};

}  // namespace xschedd::policy
