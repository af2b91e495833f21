// Time slices: how long a client's work has a device before another process's turn, where clients can set that for
// themselves (docs/explanation/policies.md, Time slices).
//
//   it runs beside the most important recent work        what that group's mode allows (benefit.h, AllowanceOf)
//   an attached group can hold it, and no more than      kShortSliceUs: its running work gives way inside a kernel
//   one of those takes its turn at a time
//   one can, and several have their turn, or none        0, the driver's own
//   none can, but another client can be held             kLongSliceUs: it is not interrupted for that one
//   it is above all others and lets them run             kLongSliceUs: what it has to do ends in one turn
//   no client can be held; untracked; opened by guard    0
//
// A context switch comes out of the slice. On an H200 (driver 580.159.04) two processes with work run at 40 % of their
// rate with 200 µs each; with 150 µs one of them makes no progress, with 60 µs neither does. So short slices are for
// clients of which one at a time has work in flight. Groups that have their turn together (filling.h) have none; nor
// have those beside a group that holds them while its host waits, where short slices took a third of their rate and did
// not shorten the waits; and a group that the guard opens has the driver's own, or its turn would pass without
// progress.
//
// A group that lets those below run has a long one if nobody is above it or its equal. With the driver's own 2 ms a
// request of 11 ms beside three others is interrupted five times, each time for a turn of all three: on an H200 it took
// 32 ms, and the others kept 83 %; with 20 ms it took 15 ms, and they kept 94 %, because there are fewer context
// switches. The others lose no more than while they are held. The exception is a group that meets its deadline although
// the others have all they can use: it gains nothing by being earlier. Where another group may overtake it, or has the
// same priority, its long slice would delay that one.
//
// The slice does not follow busy and idle: each change costs a client 2 ms of driver time, and a short slice costs
// nothing while its client has the device to itself. Thread rule: pure function.
#pragma once

#include <cstdint>
#include <optional>

namespace xschedd::policy {

inline constexpr std::uint32_t kShortSliceUs = 200;
inline constexpr std::uint32_t kLongSliceUs = 20'000;

struct SliceCase {
  bool tracked = false;  // and not on hold
  bool guarded = false;  // opened by the guard
  // Set if it runs beside the most important recent work above it.
  std::optional<std::uint32_t> beside_us = std::nullopt;
  bool can_be_held = false;       // by an attached group, whenever that is busy
  bool is_alone_in_turn = false;  // takes turns with others that can be held, one at a time
  bool somebody_can_be = false;   // any client on its device
  bool lets_others_run = false;   // alone above all others there, does not hold them, and gains by being earlier
};

// Where time slices are a lever: Settings::time_slices, and max_concurrent leaves one group at a time its turn.
inline std::uint32_t SliceOf(const SliceCase& of) {
  if (!of.tracked || of.guarded) return 0;
  if (of.beside_us) return *of.beside_us;
  if (of.can_be_held) return of.is_alone_in_turn ? kShortSliceUs : 0;
  return of.somebody_can_be || of.lets_others_run ? kLongSliceUs : 0;
}

}  // namespace xschedd::policy
