// The starvation guard: a group that has had work for nearly a second and was not open, whatever it waits for, is
// opened for a turn, whoever else is busy.
//
//   - Each device has one slot a second, as long as a turn, and in it one such group at a time: what a more important
//     client loses there does not depend on how many wait.
//   - Who has waited longest is first. A group needs the slots of all its devices at once; while it waits for one of
//     them, nobody after it takes the others. So each of n groups on devices that groups connect has its turn within
//     n + 1 seconds.
//   - Who becomes idle leaves the rest of its slot to the next.
//   - What it has in slots and otherwise adds up; whoever has had a turn's length begins a new wait when it is held
//     again. Openings too short to do anything in do not count.
// Thread rule: pure in meaning; an object has one user.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "daemon/policy/roster.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

class Guard {
 public:
  // The calls of one decision, in this order; what is given must outlive them. They write the groups' memory, which is
  // that of the last decision for those with work, the devices' memory, and when the decision must be looked at again.
  void Begin(const State& state, const Roster& roster, std::uint64_t now_ns, Decision& decision);
  // Each group with work, once.
  void NoteOpen(std::uint32_t group);
  void NoteHeld(std::uint32_t group);
  // Afterwards: who of those held has a slot.
  void GiveSlots();
  bool HasSlot(std::uint32_t group) const { return has_slot_[group] != 0; }

 private:
  enum class Slot : std::uint8_t { kFree, kRunning, kSpent, kTaken };

  void Close(std::uint32_t group);
  void GoOn(std::uint32_t group);
  void GiveOrWait(std::uint32_t group);
  void Take(std::uint32_t group);
  bool AllAre(std::uint32_t group, Slot slot) const;
  std::uint64_t EndNs(std::uint32_t group) const;
  std::uint64_t DueNs(const GroupMemory& memory) const { return memory.starved_since_ns + kNsPerS - turn_ns_; }
  void LookAt(std::uint64_t time_ns) { decision_->next_look_ns = std::min(decision_->next_look_ns, time_ns); }

  const State* state_ = nullptr;
  const Roster* roster_ = nullptr;
  Decision* decision_ = nullptr;
  std::uint64_t now_ns_ = 0;
  std::uint64_t turn_ns_ = 0;
  std::vector<Slot> slots_;             // by device
  std::vector<std::uint8_t> has_slot_;  // by group
  std::vector<std::uint32_t> continuing_;
  std::vector<std::uint32_t> due_;
};

}  // namespace xschedd::policy
