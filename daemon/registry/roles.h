// What a process may do because of its uid and groups, as the kernel reports them. Thread rule: pure functions, except
// FindRoleGroups, which reads the system's group database.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "daemon/registry/process.h"

namespace xschedd {

// None: this machine has no such group.
struct RoleGroups {
  std::optional<gid_t> administrators;  // "xschedd", which owns admin.sock
  std::optional<gid_t> readers;
};
// `readers`: the name of that group; empty: there is none.
RoleGroups FindRoleGroups(const std::string& readers);

// Whether the process may see everybody's clients: it is a reader, which may change only its own. In a container nobody
// is a reader, because its root chooses its processes' groups.
bool MayReadAll(const PeerIdentity& peer, const Origin& origin, const RoleGroups& groups);

// Whether the process's own hints and settings may raise it where the configuration says nothing. Those of root, of the
// daemon's own user and of administrators may, outside containers: most containers run as root, and are strangers.
bool MayRaise(const PeerIdentity& peer, const Origin& origin, const RoleGroups& groups);

}  // namespace xschedd
