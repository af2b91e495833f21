// Whose a client is: a user, and the place where the user's process runs. The place is the claim that applies to the
// process, else its container, else nothing: the host. Rights, quotas, turns and names of groups go by the principal,
// so that two containers that both run as root are strangers.
//
// Only the kernel's word counts, as of when the process connected. A place can only take away: its processes manage
// nothing outside it, and have a part of what their uid has. So nobody gains by making a cgroup that looks like a
// container's. Thread rule: values; pure functions.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/registry/cgroups.h"
#include "daemon/registry/claim.h"

namespace xschedd {

struct Principal {
  std::uint32_t uid = 0;
  std::string place;  // from PlaceOf or PlaceWithClaim; empty: the host

  // Not explicit: a uid alone is the user on the host.
  Principal(std::uint32_t user = 0, std::string where = {}) : uid(user), place(std::move(where)) {}
  auto operator<=>(const Principal&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};
using PrincipalPtr = std::shared_ptr<const Principal>;

// What the kernel says about where a process runs.
struct Surroundings {
  std::optional<std::string> cgroup;  // the whole path in the host's hierarchy; none: unknown
  bool is_pid_nested = false;         // its pid namespace is below the daemon's, or that cannot be read
  std::string pid_namespace;          // "pid:[4026531836]"; empty: unknown
};

// The place of a process, regardless of claims. `daemon`: the daemon's own surroundings; a container that both are in
// is no place, and if the daemon has no cgroup, the host has none. If the kernel does not say enough, the process gets
// a place of its own: it never counts as on the host.
std::string PlaceOf(const Surroundings& process, const Surroundings& daemon, pid_t pid);
// The place of a process about which the kernel says nothing.
std::string PlaceAlone(pid_t pid);

// `claim`: the id of the claim that applies, or through whose socket the process connected (even if it has ended);
// 0: none.
std::string PlaceWithClaim(std::uint64_t claim, const std::string& place);
// The same for a process. `claim_socket`: as in Origin. `claim`: the one that applies now; null: none.
std::string PlaceWithClaim(std::uint64_t claim_socket, const ClaimPtr& claim, const std::string& place);

// How much of a uid's `limit` one of its places may have: at most half, so that no place takes everything from the
// others, and at most `most`.
constexpr std::uint64_t PlaceLimit(std::uint64_t limit, std::uint64_t most = UINT64_MAX) {
  return std::min(most, limit - limit / 2);
}

// Whether only root, or what root has set up (container engines, engines that put claims), makes such places. The
// exception is root in a container of an unknown kind.
bool IsGiven(const std::string& place);

// Whether `caller`, with the uid of its process, may change a client that runs as `uid` and belongs to `owner`. A user
// also manages its subordinate uids; these manage nothing of the user's. From the host a user manages its clients
// everywhere, from inside a place only those there.
bool MayManage(const Principal& caller, std::uint32_t uid, const Principal& owner);

// " in container 0123456789ab"; empty for the host.
std::string InPlaceText(const std::string& place);
// "uid 0 in container 0123456789ab"
std::string Text(const Principal& principal);

// Where a process ran when it connected. Claims come and go, so the place by claims is computed when it is needed.
struct Origin {
  std::string cgroup;
  CgroupLineage lineage;
  std::string place;               // regardless of claims
  std::uint64_t claim_socket = 0;  // the id of the claim whose socket it connected to; 0: client.sock
};

}  // namespace xschedd
