#include "daemon/registry/roles.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>

namespace xschedd {
namespace {

std::optional<gid_t> GroupId(const char* name) {
  const group* const found = ::getgrnam(name);
  return found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

bool IsIn(const PeerIdentity& peer, std::optional<gid_t> group) {
  if (!group) return false;
  return peer.gid == *group || std::find(peer.groups.begin(), peer.groups.end(), *group) != peer.groups.end();
}

bool IsContained(const Origin& origin) {
  return !origin.place.empty() || origin.claim_socket != 0;
}

}  // namespace

RoleGroups FindRoleGroups(const std::string& readers) {
  return {.administrators = GroupId("xschedd"), .readers = readers.empty() ? std::nullopt : GroupId(readers.c_str())};
}

bool MayReadAll(const PeerIdentity& peer, const Origin& origin, const RoleGroups& groups) {
  return !IsContained(origin) && IsIn(peer, groups.readers);
}

bool MayRaise(const PeerIdentity& peer, const Origin& origin, const RoleGroups& groups) {
  if (IsContained(origin)) return false;
  return peer.uid == 0 || peer.uid == ::geteuid() || IsIn(peer, groups.administrators);
}

}  // namespace xschedd
