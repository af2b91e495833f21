#include "daemon/registry/principal.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "daemon/config/match.h"

namespace xschedd {
namespace {

constexpr std::string_view kContainer = "container ";
constexpr std::string_view kUsersContainer = "user's container ";
constexpr std::string_view kClaimPlace = "claim ";
constexpr std::size_t kShownIdBytes = 12;

// The id of the container that is the place; empty: none. The outermost one counts, since a container names the cgroups
// below itself; those that the daemon is in as well are left out.
std::string_view ContainerIn(const std::string& cgroup, const std::string& daemons) {
  const std::vector<std::string_view> ids = ContainersIn(cgroup);
  const std::vector<std::string_view> own = ContainersIn(daemons);
  const auto [differs, end] = std::mismatch(ids.begin(), ids.end(), own.begin(), own.end());
  return differs == ids.end() ? std::string_view() : *differs;
}

}  // namespace

std::string PlaceOf(const Surroundings& process, const Surroundings& daemon, pid_t pid) {
  if (!process.cgroup && daemon.cgroup) return PlaceAlone(pid);
  if (process.cgroup) {
    const std::string_view id = ContainerIn(*process.cgroup, daemon.cgroup.value_or(""));
    if (!id.empty()) {
      const std::string above = process.cgroup->substr(0, static_cast<std::size_t>(id.data() - process.cgroup->data()));
      return std::string(IsBelowUsers(above) ? kUsersContainer : kContainer) + std::string(id);
    }
  }
  const bool is_same = !process.pid_namespace.empty() && process.pid_namespace == daemon.pid_namespace;
  if (is_same || !process.is_pid_nested || daemon.is_pid_nested) return {};
  return process.pid_namespace.empty() ? PlaceAlone(pid) : process.pid_namespace;
}

std::string PlaceAlone(pid_t pid) {
  return "pid " + std::to_string(pid);
}

std::string PlaceWithClaim(std::uint64_t claim, const std::string& place) {
  return claim == 0 ? place : std::string(kClaimPlace) + std::to_string(claim);
}

std::string PlaceWithClaim(std::uint64_t claim_socket, const ClaimPtr& claim, const std::string& place) {
  const std::uint64_t its = claim == nullptr ? 0 : claim->id;
  return PlaceWithClaim(claim_socket != 0 ? claim_socket : its, place);
}

bool IsGiven(const std::string& place) {
  return place.starts_with(kContainer) || place.starts_with(kClaimPlace);
}

bool MayManage(const Principal& caller, std::uint32_t uid, const Principal& owner) {
  const bool is_users = caller.uid == uid || caller.uid == owner.uid;
  return is_users && (caller.place.empty() || caller.place == owner.place);
}

std::string InPlaceText(const std::string& place) {
  if (place.empty()) return {};
  for (const std::string_view kind : {kContainer, kUsersContainer})
    if (place.starts_with(kind)) return " in " + place.substr(0, kind.size() + kShownIdBytes);
  return " in " + place;
}

std::string Text(const Principal& principal) {
  return "uid " + std::to_string(principal.uid) + InPlaceText(principal.place);
}

}  // namespace xschedd
