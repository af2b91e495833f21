// Time slices: how long a client's work may have a device before another process's turn comes, where the device's own
// scheduling between processes is a lever that clients pull for themselves (docs/explanation/policies.md, Time slices).
//
//   it runs beside the most important one that has had
//   work lately                                         what that one's mode allows (benefit.h, AllowanceOf)
//   somebody attached may hold it, and it takes turns   kShortSliceUs: work of it that runs gives way inside a kernel
//   somebody may, and it takes none                     0, the driver's own
//   nobody may, and somebody else is so                 kLongSliceUs: it is not interrupted for those
//   nobody may be held, untracked, or by the guard      0
//
// A change of context is paid out of the slice. On an H200 (driver 580.159.04) two processes with work get on at 40 %
// of their rate with 200 µs each, one of them not at all with 150, and both not with 60. So short ones are for those of
// whom one at a time has work in flight: where several groups have their turn together nobody has any, those of whom
// several run beside an important one have longer ones (98 % with 1 ms each), who lets those below run beside it has
// none, and what the guard opens has the driver's own, or its turn would pass without progress.
//
// It is the same whether anybody is busy: a change costs each client two milliseconds of the driver's time, and the
// short one costs nothing while its client has the device to itself. Thread rule: pure.
#pragma once

#include <cstdint>
#include <optional>

namespace xschedd::policy {

inline constexpr std::uint32_t kShortSliceUs = 200;
inline constexpr std::uint32_t kLongSliceUs = 20'000;

struct SliceCase {
  bool enabled = false;  // Settings::time_slices, and one group at a time has its turn on its device
  bool tracked = false;  // and not held by an administrator
  bool guarded = false;  // open by the guard
  // In µs, where the most important one above it that has had work lately does not hold it throughout.
  std::optional<std::uint32_t> beside_us = std::nullopt;
  bool can_be_held = false;      // by somebody attached to its device
  bool takes_turns = false;      // with others of those
  bool somebody_can_be = false;  // any client attached to its device
};

inline std::uint32_t SliceOf(const SliceCase& of) {
  if (!of.enabled || !of.tracked || of.guarded) return 0;
  if (of.beside_us) return *of.beside_us;
  if (of.can_be_held) return of.takes_turns ? kShortSliceUs : 0;
  return of.somebody_can_be ? kLongSliceUs : 0;
}

}  // namespace xschedd::policy
