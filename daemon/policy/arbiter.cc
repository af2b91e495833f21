#include "daemon/policy/arbiter.h"

namespace xschedd::policy {

void Arbiter::Decide(const State& state, const Rules& rules, std::uint64_t now_ns, Decision& decision) {
  state_ = &state;
  decision_ = &decision;
  now_ns_ = now_ns;
  why_ = rules.why;
  filling_ = Filling(state.settings.turn_ms, now_ns);
  decision.next_decision_ns = kNever;

  roster_.Build(state);
  share_.Begin(state, roster_, rules.share, now_ns);
  turns_ = Turns(state.settings.turn_ms, share_.KeepsAny(), now_ns);
  // Levels and shares express fairness, not importance.
  is_by_priority_ = rules.standing == nullptr && !share_.KeepsAny();
  holders_.Begin(state, roster_, is_by_priority_, now_ns, decision);
  Survey(rules);
  FindTracked();
  FindLimits();
  FindHolders();
  FindTakers();
  FindJoiners();
  FindEarly();
  Order();
  guard_.Begin(state, roster_, now_ns, decision);
  for (const Place& place : order_)
    Admit(place.group);
  for (const Place& place : order_) {
    WatchTurns(place.group);
    if (!groups_[place.group].busy) continue;
    groups_[place.group].blocked == Why::kOpen ? guard_.NoteOpen(place.group) : guard_.NoteHeld(place.group);
  }
  guard_.GiveSlots();
  FinishShares();
  NoteBenefits();
  NoteFilling();
  StepAside();
  CountWindows();
  decision.gates.resize(state.tenants.size());
  for (std::uint32_t i = 0; i < state.tenants.size(); ++i) {
    SetGate(i, decision.gates[i]);
    decision.gates[i].slice_us = SliceFor(i, decision.gates[i]);
  }
  FindAwaited();
}

void Arbiter::NoteBenefits() {
  for (const std::uint32_t group : holders_.Observed())
    holders_.Note(group, IsOpen(group));
}

void Arbiter::FinishShares() {
  if (!share_.KeepsAny()) return;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (!share_.Keeps(group)) continue;
    share_.Finish(group, groups_[group].blocked, decision_->memory[group].share, decision_->next_decision_ns);
  }
}

}  // namespace xschedd::policy
