// When a group's host waits for the device, and what its earlier waits say about the next one.
//
//   - Waits come in rows: a token of a language model ends with three within a millisecond, then none for ten. How
//     often another one follows is counted for each place in the row. A wait that begins within kSameWaitNs after the
//     last one goes on with it, and has no place of its own: in less time than a decision takes, the daemon sees two
//     waits as one, or not.
//   - A stretch is a time without a wait: from a request's beginning to its first wait (the lead), or from a wait's end
//     to the next one (the gap). Gaps below kRestLeadNs are left out; where they are not seldom, nothing is expected
//     until that time has passed.
//   - The next wait is expected once there have been as many launches as in the recent stretch with the fewest, at the
//     pace of the present one: a host's speed changes, and what it launches for a token or a request does so less. With
//     few launches it is expected after the shortest recent stretch.
//
// Thread rule: pure functions of memory and time.
#pragma once

#include <cstdint>

#include "daemon/policy/types.h"

namespace xschedd::policy {

// Others stay held this long after a wait that another one often follows. In a token of a language model the third
// comes 0.4 to 0.8 ms after the second.
inline constexpr std::uint64_t kWaitLingerNs = kNsPerMs;
// Likewise after one that often goes on. In a token the second comes 50 to 150 us after the first.
inline constexpr std::uint64_t kSameWaitNs = 200 * kNsPerUs;
// A wait that comes sooner is near. Twice the windows of Benefit::kRestMode, since the group's own work takes a part of
// the device.
inline constexpr std::uint64_t kRestLeadNs = 4 * kNsPerMs;

// It has launched as many since the last decision.
void NoteLaunches(WaitMemory& memory, std::uint64_t launched);
// `waits`: whether the host waits from now on. Returns whether a row begins with it; from its last place on, each
// further wait of a row counts as one.
bool NoteWaits(WaitMemory& memory, bool waits, std::uint64_t now_ns);
// A request begins. The one before it ended at `ended_ns`.
void NoteRequest(WaitMemory& memory, std::uint64_t ended_ns, std::uint64_t now_ns);

// Until when others stay held after the last wait, because it often goes on, or another one often follows at once; 0:
// they do not.
std::uint64_t LingersUntilNs(const WaitMemory& memory);
// Until when another wait is near, because one often follows the last one so soon; 0: none is.
std::uint64_t NearUntilNs(const WaitMemory& memory);
// When the next wait is expected, perhaps now or before; 0: unknown, or near.
std::uint64_t NextWaitNs(const WaitMemory& memory, std::uint64_t now_ns);
// When to ask again, in time for `at_ns`, which is later than `now_ns` and relative to the expected wait.
std::uint64_t AskAgainNs(const WaitMemory& memory, std::uint64_t at_ns, std::uint64_t now_ns);

}  // namespace xschedd::policy
