// All claims (claim.h): which one a process is of, and which are over. It decides by what it is told, the time and the
// inodes of cgroups, and looks at nothing itself. Thread rule: one owner.
#pragma once

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
    bool is_changed = false;  // in more than the time that it has left
  };
  // Takes the claim in place of the one of its name. Refuses what claim.h refuses, a cgroup that is not there, one that
  // has a claim of another name, and more than kMaxClaims.
  Result<Put> Add(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns, bool dry_run = false);
  // One that was in a table like this before a restart. False: it is not one, or not there any more.
  bool Restore(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns);
  // Null: there is none of this name.
  ClaimPtr Remove(const std::string& name);
  // Removes those whose time is over.
  std::vector<ClaimPtr> RemoveExpired(std::uint64_t now_ns);
  // Removes those whose cgroup is gone, also where there is another of its name.
  std::vector<ClaimPtr> RemoveGone(const CgroupInodeOf& inode_of);

  // That of the innermost cgroup of the path that has one; null: none. `lineage`: of the path, when it was read.
  ClaimPtr Match(std::string_view cgroup, const CgroupLineage& lineage) const;
  ClaimPtr Find(const std::string& name) const;
  ClaimPtr FindId(std::uint64_t id) const;

  // When the first of them is over by its time; 0: none will be.
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
