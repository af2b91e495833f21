// Which groups hold those below them whenever they are busy: all, except those that are known not to need it
// (benefit.h) and those that are trying it now.
//
//   - One group of a priority tries at a time, the oldest first. While others run beside it, no group of that
//     priority holds them, or both its blocks would be held.
//   - Time in which a group holds no others because an equal is trying is not measured.
// Thread rule: pure but for scratch memory; one user per object.
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
  // Without `measures` all hold, and Observe, NoteOthers, Choose and Note are not called.
  void Begin(const State& state, const Roster& roster, bool measures, std::uint64_t now_ns, Decision& decision);
  // For each tracked group that has others below it, or had: what it and those others do. What its clients do, their
  // launches, waits and deadlines, is added here.
  void Observe(std::uint32_t group, Benefit::Work work);
  // Then for each of them: beside whom.
  void NoteOthers(std::uint32_t group, const Others& others);
  // Decides which group tries now, and so which groups hold.
  void Choose();
  const std::vector<std::uint32_t>& Observed() const { return tracked_; }

  bool Measures() const { return measures_; }
  // The mode in force.
  BenefitMemory::Mode ModeOf(std::uint32_t group) const { return modes_[group]; }
  // Whether it holds others now, if busy.
  bool HoldsNow(std::uint32_t group) const { return holds_now_[group] != 0; }
  // Whether its benefit is measured: never that of a strict group.
  bool Measures(std::uint32_t group) const { return measures_ && BenefitOf(group).Measures(); }

  // After admission, for each of them. `open`: busy and not held itself.
  void Note(std::uint32_t group, bool open);
  // After that: whether those below it may be untracked. And that they are; it is noted again then.
  bool MayLeaveOthers(std::uint32_t group) const;
  void LeaveOthers(std::uint32_t group, const Benefit::Work& work, bool open);
  // Whether its launches must be known as they happen.
  bool NeedsCount(std::uint32_t group) const { return policy::NeedsCount(*decision_->memory[group].benefit); }
  // Whether a pair is measured.
  bool IsMeasured(std::uint32_t group) const { return policy::IsMeasured(*decision_->memory[group].benefit); }
  // Before Observe: whether they still may be.
  bool MayStayAside(std::uint32_t group) const;

 private:
  bool IsAboutToGoOn(std::uint32_t group) const;
  void Try();
  int PriorityOf(std::uint32_t group) const { return state_->groups[group].priority; }
  bool IsObserved(std::uint32_t group) const { return decision_->memory[group].benefit.IsUsed(); }
  BenefitMemory& MemoryOf(std::uint32_t group) { return decision_->memory[group].benefit.Use(); }

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
  std::vector<std::uint32_t> trying_;       // one per priority
  std::vector<BenefitMemory::Mode> modes_;  // by group
  std::vector<std::uint8_t> holds_now_;     // likewise
  std::vector<std::uint8_t> forced_;        // likewise: holds no others while an equal tries
};

}  // namespace xschedd::policy
