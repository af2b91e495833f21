// How a policy ranks a group inside its priority class. Priority always comes first: arbiter.h compares ranks
// (priority, level) and does everything else, so that a policy is one small pure function. Thread rule: values.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "daemon/policy/types.h"

namespace xschedd::policy {

// The lowest level.
inline constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::min();

struct Standing {
  // Busy groups run before busy ones of a lower level, and together on one level. An idle group has the level that it
  // would have if it became busy now.
  std::int64_t level = 0;
  // The best level that it may have at its next transition. A group whose level is below another's potential can be
  // overtaken, and so has a background window.
  std::int64_t potential = 0;
  // Whether levels matter among equal priorities: then all clients that share a device with the group are tracked.
  bool ranked = false;
  // When the level changes although no tenant's state does.
  std::uint64_t next_decision_ns = kNever;
};

// A group as a policy sees it.
struct Candidate {
  const State& state;
  const Group& group;
  std::span<const std::uint32_t> tenants;  // indices into State::tenants
  bool busy;                               // at least one of them
  std::uint64_t now_ns;
  // What the other groups of its owner that have work have used, and how many they are, if the policy asks for it.
  std::uint64_t others_use_ns = 0;
  std::uint32_t others_busy = 0;
};

// What counts of a busy group's use for its owner.
using UseFunction = std::uint64_t(const Candidate& candidate);

// `next`: the group's memory for the next decision. A policy writes only its own part, which is empty before.
using StandingFunction = Standing(const Candidate& candidate, GroupMemory& next);

}  // namespace xschedd::policy
