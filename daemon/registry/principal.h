// Whose a client is: a user, and the place in which the user's process runs. The place is the claim that applies to the
// process, else its container, else nothing: the host. Rights, quotas, turns and names of groups go by it, so that two
// containers that both run as root are strangers.
//
// Only the kernel's word counts, of the moment in which the process connected. A place can only take away: its
// processes manage nothing outside of it, and have a part of what their uid has. So nobody gains by making a cgroup
// that looks like a container's. Thread rule: values; pure functions.
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
  std::string place;  // as PlaceOf and PlaceWithClaim name it; empty: the host

  // Not explicit: a uid alone is the user on the host.
  Principal(std::uint32_t user = 0, std::string where = {}) : uid(user), place(std::move(where)) {}
  auto operator<=>(const Principal&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};
using PrincipalPtr = std::shared_ptr<const Principal>;

// What the kernel says of where a process runs.
struct Surroundings {
  std::optional<std::string> cgroup;  // the whole path in the host's hierarchy; none: not known
  bool is_pid_nested = false;         // its pid namespace is below the daemon's, or that cannot be read
  std::string pid_namespace;          // "pid:[4026531836]"; empty: not known
};

// The place of a process apart from claims. `daemon`: the daemon's own surroundings; a container that both are in is no
// place, and if the daemon has no cgroup, the host has none. Where the kernel does not say enough, a process is alone
// in its place: it never counts as on the host.
std::string PlaceOf(const Surroundings& process, const Surroundings& daemon, pid_t pid);
// That of a process of which the kernel says nothing.
std::string PlaceAlone(pid_t pid);

// `claim`: the id of the claim that applies, or through whose socket the process connected (even if it has ended);
// 0: none.
std::string PlaceWithClaim(std::uint64_t claim, const std::string& place);
// The same of a process: `claim_socket` as in Origin; `claim`: that applies to it now; null: none.
std::string PlaceWithClaim(std::uint64_t claim_socket, const ClaimPtr& claim, const std::string& place);

// How much of `limit`, which a uid may have in all, one of its places may have. Each is limited to a half, so that none
// takes all from the others; `most`: and to this.
constexpr std::uint64_t PlaceLimit(std::uint64_t limit, std::uint64_t most = UINT64_MAX) {
  return std::min(most, limit - limit / 2);
}

// Whether only root and what root has set up (container engines, those who put claims) make such places, but for root
// in a container of an unknown kind.
bool IsGiven(const std::string& place);

// Whether `caller`, with the uid of its process, may change a client that runs as `uid` and belongs to `owner`. A user
// also manages its subordinate uids, which manage nothing of the user's. On the host it manages its clients everywhere;
// from inside a place only those there.
bool MayManage(const Principal& caller, std::uint32_t uid, const Principal& owner);

// " in container 0123456789ab"; empty for the host.
std::string InPlaceText(const std::string& place);
// "uid 0 in container 0123456789ab"
std::string Text(const Principal& principal);

// Where a process ran when it connected. Claims come and go, so its place with claims is found when it is needed.
struct Origin {
  std::string cgroup;
  CgroupLineage lineage;
  std::string place;               // apart from claims
  std::uint64_t claim_socket = 0;  // the id of the claim on whose socket it connected; 0: on another
};

}  // namespace xschedd
