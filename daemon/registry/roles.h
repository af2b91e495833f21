// What a process may do because of its groups, as the kernel reports them. Thread rule: pure functions,
// but for FindRoleGroups, which asks the system's list of groups.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "daemon/registry/process.h"

namespace xschedd {

// None: this machine has no such group.
struct RoleGroups {
  std::optional<gid_t> administrators;  // "xschedd", whose admin.sock is
  std::optional<gid_t> readers;
};
// `readers`: the name of that group; empty: there is none.
RoleGroups FindRoleGroups(const std::string& readers);

// Whether the process may see everybody's clients: a reader, who changes no more than any other user.
bool MayReadAll(const PeerIdentity& peer, const RoleGroups& groups);

// Whether what the process says for itself may raise it without a word of the configuration: root's, the daemon's own
// user's, and administrators' may.
bool MayRaise(const PeerIdentity& peer, const RoleGroups& groups);

}  // namespace xschedd
