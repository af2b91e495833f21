// What a policy says of a group inside its priority class. Priority always comes first: arbiter.h compares ranks
// (priority, level) and does everything else, so that a policy is one small pure function.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "daemon/policy/types.h"

namespace xschedd::policy {

// The lowest level: whoever has any other goes before.
inline constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::min();

struct Standing {
  // A busy group goes before busy ones of lower level; those of one level run together. An idle group stands where it
  // would stand if it became busy now.
  std::int64_t level = 0;
  // The best level that it may have at its next transition. Whoever's level is below somebody's potential can be
  // overtaken, and therefore has only a background window.
  std::int64_t potential = 0;
  // Whether levels matter beside an equal: who shares a device with such a group must be tracked.
  bool ranked = false;
  // When the level changes although no tenant's state does.
  std::uint64_t next_look_ns = kNever;
};

// A group as a policy sees it.
struct Candidate {
  const State& state;
  const Group& group;
  std::span<const std::uint32_t> tenants;  // indices into State::tenants
  bool busy;                               // one of them at least
  std::uint64_t now_ns;
};

// `next` is the group's memory for the next decision; a policy writes only its own part, which is empty before.
using StandingFunction = Standing(const Candidate& candidate, GroupMemory& next);

}  // namespace xschedd::policy
