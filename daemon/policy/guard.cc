#include "daemon/policy/guard.h"

#include <tuple>

namespace xschedd::policy {
namespace {

// A held thread needs up to 300 µs to run again.
constexpr std::uint64_t kUsefulNs = kNsPerMs;

}  // namespace

void Guard::Begin(const State& state, const Roster& roster, std::uint64_t now_ns, Decision& decision) {
  state_ = &state;
  roster_ = &roster;
  decision_ = &decision;
  now_ns_ = now_ns;
  turn_ns_ = state.settings.guard_ms_per_s * kNsPerMs;
  continuing_.clear();
  due_.clear();
  has_slot_.assign(state.groups.size(), 0);
  slots_.assign(state.devices.size(), Slot::kFree);
  for (std::size_t device = 0; device < slots_.size(); ++device) {
    const DeviceMemory& memory = state.devices[device].memory;
    if (memory.guard_since_ns == 0 || memory.guard_since_ns + kNsPerS <= now_ns) continue;
    slots_[device] = memory.guard_since_ns + turn_ns_ > now_ns ? Slot::kRunning : Slot::kSpent;
  }
}

// Its slot goes on: if it is held again before the end, it has the rest.
void Guard::NoteOpen(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  if (memory.open_since_ns == 0) memory.open_since_ns = now_ns_;
  if (turn_ns_ != 0 && memory.guard_until_ns > now_ns_) continuing_.push_back(group);
}

void Guard::NoteHeld(std::uint32_t group) {
  if (turn_ns_ == 0 || decision_->memory[group].guard_until_ns <= now_ns_) return Close(group);
  has_slot_[group] = 1;
  continuing_.push_back(group);
}

// Ends its opening or slot, if any, and queues it if it is due.
void Guard::Close(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  const std::uint64_t open = memory.open_since_ns == 0 ? 0 : now_ns_ - memory.open_since_ns;
  if (open >= std::min(kUsefulNs, turn_ns_)) memory.had_ns += open;
  memory.open_since_ns = 0;
  memory.guard_until_ns = 0;
  if (memory.starved_since_ns == 0 || memory.had_ns >= turn_ns_) {
    memory.starved_since_ns = now_ns_;
    memory.had_ns = 0;
  }
  if (turn_ns_ == 0) return;
  if (DueNs(memory) <= now_ns_) {
    due_.push_back(group);
  } else {
    DecideAgainAt(DueNs(memory));
  }
}

void Guard::GiveSlots() {
  std::sort(continuing_.begin(), continuing_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return state_->groups[a].id < state_->groups[b].id; });
  for (const std::uint32_t group : continuing_)
    GoOn(group);
  std::sort(due_.begin(), due_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::tuple(decision_->memory[a].starved_since_ns, state_->groups[a].id) <
           std::tuple(decision_->memory[b].starved_since_ns, state_->groups[b].id);
  });
  for (const std::uint32_t group : due_)
    GiveOrWait(group);
}

// Continues a slot, or ends it if the group has come to a device that has none for it.
void Guard::GoOn(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  bool fits = true;
  for (const std::uint32_t i : roster_->TenantsOf(group)) {
    const Slot slot = slots_[state_->tenants[i].device];
    fits = fits && (slot == Slot::kFree || slot == Slot::kRunning);
  }
  if (!fits) {
    memory.guard_until_ns = 0;
    if (has_slot_[group] != 0) Close(group);
    has_slot_[group] = 0;
    return;
  }
  Take(group);
  memory.guard_until_ns = std::min(memory.guard_until_ns, EndNs(group));
  if (has_slot_[group] != 0) DecideAgainAt(memory.guard_until_ns);
}

void Guard::GiveOrWait(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  const bool rest = AllAre(group, Slot::kRunning) && EndNs(group) - now_ns_ >= kUsefulNs;
  if (rest || AllAre(group, Slot::kFree)) {
    Take(group);
    has_slot_[group] = 1;
    memory.open_since_ns = now_ns_;
    memory.guard_until_ns = EndNs(group);
    return DecideAgainAt(memory.guard_until_ns);
  }
  // A slot that is free already needs no time: the group that takes it sets one for its end.
  std::uint64_t free_ns = 0;
  for (const std::uint32_t i : roster_->TenantsOf(group)) {
    const std::uint32_t device = state_->tenants[i].device;
    const std::uint64_t since = decision_->devices[device].guard_since_ns;
    if (since != 0) free_ns = std::max(free_ns, since + kNsPerS);
    slots_[device] = Slot::kTaken;
  }
  if (free_ns > now_ns_) DecideAgainAt(free_ns);
}

void Guard::Take(std::uint32_t group) {
  for (const std::uint32_t i : roster_->TenantsOf(group)) {
    const std::uint32_t device = state_->tenants[i].device;
    if (slots_[device] == Slot::kFree) decision_->devices[device].guard_since_ns = now_ns_;
    slots_[device] = Slot::kTaken;
  }
}

bool Guard::AllAre(std::uint32_t group, Slot slot) const {
  for (const std::uint32_t i : roster_->TenantsOf(group))
    if (slots_[state_->tenants[i].device] != slot) return false;
  return true;
}

// When the first of its devices' slots ends.
std::uint64_t Guard::EndNs(std::uint32_t group) const {
  std::uint64_t end = kNever;
  for (const std::uint32_t i : roster_->TenantsOf(group))
    end = std::min(end, decision_->devices[state_->tenants[i].device].guard_since_ns + turn_ns_);
  return end;
}

}  // namespace xschedd::policy
