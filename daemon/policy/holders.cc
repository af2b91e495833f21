#include "daemon/policy/holders.h"

#include <algorithm>

namespace xschedd::policy {
namespace {

// The longest pause between two bursts of one piece of work.
constexpr std::uint64_t kPause = 100 * kNsPerMs;

}  // namespace

void Holders::Begin(const State& state, const Roster& roster, bool measures, std::uint64_t now_ns, Decision& decision) {
  state_ = &state;
  roster_ = &roster;
  decision_ = &decision;
  now_ns_ = now_ns;
  measures_ = measures;
  benefit_ = Benefit(state.settings.tolerance_percent, state.settings.linger_us, now_ns);
  strict_ = Benefit(0, state.settings.linger_us, now_ns);
  tracked_.clear();
  due_.clear();
  trying_.clear();
  modes_.assign(state.groups.size(), BenefitMemory::Mode::kHeld);
  holds_now_.assign(state.groups.size(), 1);
  forced_.assign(state.groups.size(), 0);
}

void Holders::Observe(std::uint32_t group, Benefit::Work work) {
  BenefitMemory& memory = MemoryOf(group);
  memory = *state_->groups[group].memory.benefit;
  std::uint64_t soonest = kNever;
  for (const std::uint32_t i : roster_->TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[i];
    work.launched += tenant.launched;
    work.waits = work.waits || tenant.waits;
    if (tenant.deadline_after_ns != 0) soonest = std::min(soonest, tenant.deadline_after_ns);
  }
  if (soonest != kNever) work.deadline_ns = soonest;
  BenefitOf(group).Advance(memory, work);
  tracked_.push_back(group);
}

void Holders::NoteOthers(std::uint32_t group, const Others& others) {
  BenefitMemory& memory = MemoryOf(group);
  const Benefit& benefit = BenefitOf(group);
  benefit.NoteOthers(memory, others);
  if (policy::IsMeasured(memory) && IsAboutToGoOn(group)) trying_.push_back(group);
  if (benefit.IsDue(memory)) due_.push_back(group);
}

void Holders::Choose() {
  Try();
  for (const std::uint32_t group : tracked_) {
    BenefitMemory& memory = MemoryOf(group);
    BenefitOf(group).SetHolds(memory);
    modes_[group] = memory.mode;
    holds_now_[group] = memory.holds ? 1 : 0;
  }
  for (const std::uint32_t group : trying_) {
    const BenefitMemory::Mode tried = MemoryOf(group).mode;
    if (tried == BenefitMemory::Mode::kHeld) continue;
    const BenefitMemory::Mode mode = HoldsThroughout(tried) ? tried : std::max(tried, BenefitMemory::Mode::kBeside);
    for (std::uint32_t equal = 0; equal < modes_.size(); ++equal) {
      if (equal == group || PriorityOf(equal) != PriorityOf(group) || modes_[equal] >= mode) continue;
      modes_[equal] = mode;
      forced_[equal] = 1;
      if (HoldsThroughout(mode)) continue;
      holds_now_[equal] = 0;
      if (IsObserved(equal)) MemoryOf(equal).holds = false;
    }
  }
}

void Holders::Try() {
  const std::size_t before = trying_.size();
  for (const std::uint32_t group : due_) {
    const auto equal = std::find_if(trying_.begin(), trying_.end(),
                                    [&](std::uint32_t other) { return PriorityOf(other) == PriorityOf(group); });
    if (equal == trying_.end()) {
      trying_.push_back(group);
    } else if (equal - trying_.begin() >= static_cast<std::ptrdiff_t>(before) &&
               state_->groups[group].id < state_->groups[*equal].id) {
      *equal = group;
    }
  }
  for (std::size_t i = before; i < trying_.size(); ++i)
    BenefitOf(trying_[i]).Begin(MemoryOf(trying_[i]));
}

bool Holders::IsAboutToGoOn(std::uint32_t group) const {
  const auto tenants = roster_->TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
    const Tenant& tenant = state_->tenants[i];
    return tenant.busy || (tenant.idle_since_ns != 0 && now_ns_ - tenant.idle_since_ns < kPause);
  });
}

void Holders::Note(std::uint32_t group, bool open) {
  BenefitMemory& memory = MemoryOf(group);
  if (forced_[group] != 0) memory.contended = false;
  BenefitOf(group).Note(memory, open, decision_->next_decision_ns);
}

bool Holders::MayLeaveOthers(std::uint32_t group) const {
  if (!measures_ || !IsObserved(group)) return false;
  return BenefitOf(group).MayLeaveOthers(*decision_->memory[group].benefit, decision_->next_decision_ns);
}

void Holders::LeaveOthers(std::uint32_t group, const Benefit::Work& work, bool open) {
  BenefitOf(group).LeaveOthers(MemoryOf(group), work);
  Note(group, open);  // a trial may be due earlier now
}

bool Holders::MayStayAside(std::uint32_t group) const {
  return measures_ && BenefitOf(group).MayStayAside(*state_->groups[group].memory.benefit);
}

}  // namespace xschedd::policy
