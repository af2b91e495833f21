// All claims (claim.h): which one applies to a process, and which have ended. It takes the time and the inodes of
// cgroups as arguments, and reads no clock or file itself. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/registry/cgroups.h"
#include "daemon/registry/claim.h"

namespace xschedd {

class ClaimTable {
 public:
  struct Put {
    ClaimPtr claim;
    bool is_new = false;
    bool is_changed = false;  // in more than its remaining time
  };
  // Adds the claim, or replaces the one with its name. Refuses what Check (claim.h) refuses, a cgroup that does not
  // exist or has a claim with another name, and more than kMaxClaims claims.
  Result<Put> Add(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns, bool dry_run = false);
  // Adds a claim that was saved before a restart. False: it is not valid, or has ended.
  bool Restore(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns);
  // Makes sure that no other claim gets this id.
  void Reserve(std::uint64_t id) { next_id_ = std::max(next_id_, id + 1); }
  // Null: there is none with this name.
  ClaimPtr Remove(const std::string& name);
  // Removes those whose time has run out.
  std::vector<ClaimPtr> RemoveExpired(std::uint64_t now_ns);
  // Removes those whose cgroup is gone, even if there is a new one with the same path.
  std::vector<ClaimPtr> RemoveGone(const CgroupInodeOf& inode_of);

  // The claim of the innermost cgroup on the path that has one; null: none has. `lineage`: the path's when it was read.
  ClaimPtr Match(std::string_view cgroup, const CgroupLineage& lineage) const;
  ClaimPtr Find(const std::string& name) const;
  ClaimPtr FindId(std::uint64_t id) const;

  // When the next one expires; 0: none will.
  std::uint64_t NextExpiryNs() const;
  const std::map<std::string, ClaimPtr>& All() const { return by_name_; }

 private:
  void Erase(const Claim& claim);

  std::map<std::string, ClaimPtr> by_name_;
  std::map<std::string, ClaimPtr, std::less<>> by_cgroup_;
  std::map<std::uint64_t, ClaimPtr> by_id_;
  std::uint64_t next_id_ = 1;
};

}  // namespace xschedd
