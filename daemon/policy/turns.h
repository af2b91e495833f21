// Turns of background groups, and of those that are kept to shares: where a device allows only so many of them at a
// time, each runs for turn_ms, then goes to the back of the queue if another waits. One that becomes idle gives its
// turn back at once; one that is held for a more important client keeps it. A turn belongs to a group and covers all
// its devices. Thread rule: pure functions.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Turns {
 public:
  Turns(std::uint32_t turn_ms, std::uint64_t now_ns) : turn_ns_(turn_ms * kNsPerMs), now_ns_(now_ns) {}

  // Ends turns that are over, before groups are put in order.
  void Expire(GroupMemory& memory) const;

  void NoteOpen(GroupMemory& memory) const;
  // Not busy any more.
  void NoteIdle(GroupMemory& memory) const;
  // Another group waits for this one's turn to end.
  void NoteAwaited(const GroupMemory& memory, std::uint64_t& next_look_ns) const;

 private:
  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

// How many such groups may be open on `device` at a time; 0: no limit.
inline std::uint32_t ConcurrentLimit(const Settings& settings, const Device& device) {
  return settings.max_concurrent.value_or(device.default_max_concurrent);
}

}  // namespace xschedd::policy
