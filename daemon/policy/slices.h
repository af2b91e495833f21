// Time slices: how long a client's work may have a device before another process's turn comes, where the device's own
// scheduling between processes is a lever that clients pull for themselves (docs/explanation/policies.md, Time slices).
//
//   somebody attached may hold it           kShortSliceUs: work of it that runs gives way inside a kernel
//   nobody may, and somebody else is so     kLongSliceUs: it is not interrupted for those
//   nobody may be held, or untracked        0, the driver's own
//
// It is the same whether anybody is busy: a change costs each client a preemption, and the short one costs nothing
// while its client has the device to itself. Thread rule: pure.
#pragma once

#include <cstdint>

namespace xschedd::policy {

inline constexpr std::uint32_t kShortSliceUs = 200;
inline constexpr std::uint32_t kLongSliceUs = 20'000;

struct SliceCase {
  bool enabled = false;          // Settings::time_slices
  bool tracked = false;          // and not held by an administrator
  bool can_be_held = false;      // by somebody attached to its device
  bool somebody_can_be = false;  // any client attached to its device
};

inline std::uint32_t SliceOf(const SliceCase& of) {
  if (!of.enabled || !of.tracked || !of.somebody_can_be) return 0;
  return of.can_be_held ? kShortSliceUs : kLongSliceUs;
}

}  // namespace xschedd::policy
