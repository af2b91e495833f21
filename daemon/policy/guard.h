// The starvation guard: a group that had work for nearly a second without being open, whatever it waits for, is opened
// for a turn, whatever else is busy.
//
//   - Each device has one slot a second, as long as a turn, for one such group at a time: what a more important client
//     loses does not depend on how many wait.
//   - The longest wait is first. A group needs the slots of all its devices at once; while it waits for one, no later
//     group takes the others. So each of n groups on connected devices has its turn within n + 1 seconds.
//   - A group that becomes idle leaves the rest of its slot to the next.
//   - Time open in slots and otherwise adds up; a group that had a turn's length begins a new wait when it is held
//     again, and so does one that lets another have its turn (turns.h). Openings too short to be of use (kUsefulNs) do
//     not count.
// Thread rule: pure but for scratch memory; one user per object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "daemon/policy/roster.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

class Guard {
 public:
  // The calls of one decision, in this order; the arguments must outlive them. They write the time of the next decision
  // and the memory of devices and groups, which must be that of the last decision (of groups, only those with work).
  void Begin(const State& state, const Roster& roster, std::uint64_t now_ns, Decision& decision);
  // Each group with work, once.
  void NoteOpen(std::uint32_t group);
  void NoteHeld(std::uint32_t group);
  // After these: gives slots to held groups.
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
  void DecideAgainAt(std::uint64_t time_ns) {
    decision_->next_decision_ns = std::min(decision_->next_decision_ns, time_ns);
  }

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
