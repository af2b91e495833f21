// Who asked for a change, and how messages name them. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/registry/claim.h"
#include "daemon/registry/principal.h"

namespace xschedd {

// An administrator, or the user that owns the clients.
struct Actor {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  bool is_admin = true;
  bool may_raise = false;  // MayRaise (registry/roles.h)
  bool may_read_all = false;
  ClaimPtr claim = {};                          // its process's; null: none
  std::string place = {};                       // as in Principal, by the claim it has now; counts only for a user
  std::optional<std::uint32_t> login_uid = {};  // who logged in and became `uid` (sudo); none: unknown
};

// The caller; for an administrator, whose place does not matter, the uid alone.
inline Principal PrincipalOf(const Actor& actor) {
  return {actor.uid, actor.is_admin ? std::string() : actor.place};
}

// "by uid 0 (pid 12)", for events and reasons.
std::string Text(const Actor& actor);
// The same as fields of a log line.
std::string Fields(const Actor& actor);

}  // namespace xschedd
