// Who asked for a change, and how texts name them. Thread rule: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xschedd {

// An administrator, or the user that owns the clients.
struct Actor {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  bool is_admin = true;
  bool may_raise = false;  // MayRaise (registry/roles.h)
  bool may_read_all = false;
  std::uint64_t claim_socket = 0;               // as in ClientIdentity
  std::optional<std::uint32_t> login_uid = {};  // who logged in and became `uid` (sudo); none: unknown
};

// "by uid 0 (pid 12)", for events and reasons.
std::string Text(const Actor& actor);
// The same as fields of a log line.
std::string Fields(const Actor& actor);

}  // namespace xschedd
