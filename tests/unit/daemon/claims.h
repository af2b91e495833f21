// Claims and clients in cgroups; the cgroups are a table of paths and inodes. Thread rule: the test's thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "daemon/registry/claim_table.h"
#include "daemon/registry/client.h"

namespace xschedd::test {

using CgroupTable = std::map<std::string, std::uint64_t>;

inline CgroupInodeOf InodesOf(const CgroupTable& cgroups) {
  return [&cgroups](const std::string& path) {
    const auto found = cgroups.find(path);
    return found == cgroups.end() ? std::nullopt : std::optional(found->second);
  };
}

inline Claim MakeClaim(const std::string& name, const std::string& cgroup) {
  Claim claim;
  claim.name = name;
  claim.cgroup = cgroup;
  return claim;
}

inline NewClient ClientIn(const std::string& cgroup, std::uint64_t pid, std::optional<int> hint = std::nullopt) {
  NewClient fresh;
  fresh.identity.pid = pid;
  fresh.identity.cgroup = cgroup;
  fresh.identity.is_cgroup_exact = true;
  fresh.identity.may_raise = true;
  fresh.hints.priority = hint;
  return fresh;
}

}  // namespace xschedd::test
