// Who asked for a change, and the words for it. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xschedd {

// Who asked for a change: an administrator, or the user whose clients they are.
struct Actor {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  bool is_admin = true;
  bool may_raise = false;  // MayRaise (registry/roles.h)
  bool may_read_all = false;
  std::uint64_t claim_socket = 0;               // as in ClientIdentity
  std::optional<std::uint32_t> login_uid = {};  // who logged in and became `uid` (sudo); none: not known
};

// "by uid 0 (pid 12)", for events and for the reasons of what changed.
std::string Text(const Actor& actor);
// The same for a line of the log.
std::string Fields(const Actor& actor);

}  // namespace xschedd
