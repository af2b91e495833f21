#include "daemon/registry/claim_table.h"

#include <algorithm>
#include <utility>

namespace xschedd {
namespace {

// Whether the claim's cgroup no longer exists. One that cannot be read counts as existing.
bool IsGone(const Claim& claim, const CgroupInodeOf& inode_of) {
  if (claim.cgroup.empty()) return false;
  const auto inode = inode_of(claim.cgroup);
  return !inode || (*inode != kUnknownInode && *inode != claim.cgroup_inode);
}

}  // namespace

Result<ClaimTable::Put> ClaimTable::Add(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns,
                                        bool dry_run) {
  if (const auto checked = Check(claim); !checked) return tl::unexpected(checked.error());
  const auto inode = claim.cgroup.empty() ? std::optional(kUnknownInode) : inode_of(claim.cgroup);
  if (!inode) {
    return Fail(
        "there is no cgroup " + claim.cgroup + " in the hierarchy that xschedd uses",
        "create it before its claim, and give it as in /proc/PID/cgroup (the line \"name=systemd\", or else \"0::\")");
  }
  if (*inode == kUnknownInode && !claim.cgroup.empty())
    return Fail("the cgroup " + claim.cgroup + " cannot be read", "try again");
  const ClaimPtr before = Find(claim.name);
  if (const auto other = by_cgroup_.find(claim.cgroup); other != by_cgroup_.end() && other->second != before) {
    // That claim's cgroup may be gone, and nobody has noticed yet.
    if (!IsGone(*other->second, inode_of)) {
      return Fail("cgroup " + claim.cgroup + " has claim \"" + other->second->name + "\" already",
                  "put that claim again, or remove it first");
    }
  }
  if (before == nullptr && by_name_.size() >= kMaxClaims) {
    return Fail("there are " + std::to_string(by_name_.size()) + " claims, as many as xschedd keeps",
                "remove those of jobs that have ended");
  }
  claim.cgroup_inode = *inode;
  claim.id = before != nullptr ? before->id : next_id_;
  claim.expires_ns = claim.ttl_ns == 0 ? 0 : now_ns + claim.ttl_ns;
  Put put{.claim = std::make_shared<const Claim>(claim), .is_new = before == nullptr, .is_changed = true};
  if (before != nullptr) {
    claim.expires_ns = before->expires_ns;
    put.is_changed = claim != *before;
  }
  if (dry_run) return put;
  if (before != nullptr) Erase(*before);
  Reserve(put.claim->id);
  by_name_[put.claim->name] = put.claim;
  by_id_[put.claim->id] = put.claim;
  if (!put.claim->cgroup.empty()) by_cgroup_[put.claim->cgroup] = put.claim;
  return put;
}

bool ClaimTable::Restore(Claim claim, const CgroupInodeOf& inode_of, std::uint64_t now_ns) {
  Reserve(claim.id);
  const bool is_over = claim.expires_ns != 0 && claim.expires_ns <= now_ns;
  const bool is_known = by_id_.contains(claim.id) || by_name_.contains(claim.name) || by_cgroup_.contains(claim.cgroup);
  if (!Check(claim) || claim.id == 0 || is_over || is_known || by_name_.size() >= kMaxClaims) return false;
  if (IsGone(claim, inode_of)) return false;
  const auto restored = std::make_shared<const Claim>(std::move(claim));
  by_name_[restored->name] = restored;
  by_id_[restored->id] = restored;
  if (!restored->cgroup.empty()) by_cgroup_[restored->cgroup] = restored;
  return true;
}

void ClaimTable::Erase(const Claim& claim) {
  const auto place = by_cgroup_.find(claim.cgroup);
  if (place != by_cgroup_.end() && place->second->id == claim.id) by_cgroup_.erase(place);
  by_id_.erase(claim.id);
  by_name_.erase(std::string(claim.name));
}

ClaimPtr ClaimTable::Remove(const std::string& name) {
  ClaimPtr found = Find(name);
  if (found != nullptr) Erase(*found);
  return found;
}

std::vector<ClaimPtr> ClaimTable::RemoveExpired(std::uint64_t now_ns) {
  std::vector<ClaimPtr> over;
  for (const auto& [name, claim] : by_name_)
    if (claim->expires_ns != 0 && claim->expires_ns <= now_ns) over.push_back(claim);
  for (const ClaimPtr& claim : over)
    Erase(*claim);
  return over;
}

std::vector<ClaimPtr> ClaimTable::RemoveGone(const CgroupInodeOf& inode_of) {
  std::vector<ClaimPtr> gone;
  for (const auto& [name, claim] : by_name_)
    if (IsGone(*claim, inode_of)) gone.push_back(claim);
  for (const ClaimPtr& claim : gone)
    Erase(*claim);
  return gone;
}

ClaimPtr ClaimTable::Match(std::string_view cgroup, const CgroupLineage& lineage) const {
  if (by_cgroup_.empty() || lineage.empty() || CgroupDepth(cgroup) != lineage.size()) return nullptr;
  for (std::size_t depth = lineage.size(); depth > 0; --depth) {
    const auto found = by_cgroup_.find(cgroup);
    const std::uint64_t inode = lineage[depth - 1];
    if (found != by_cgroup_.end() && inode != kUnknownInode && inode == found->second->cgroup_inode)
      return found->second;
    cgroup = cgroup.substr(0, cgroup.rfind('/'));
  }
  return nullptr;
}

ClaimPtr ClaimTable::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

ClaimPtr ClaimTable::FindId(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::uint64_t ClaimTable::NextExpiryNs() const {
  std::uint64_t next = 0;
  for (const auto& [name, claim] : by_name_)
    if (claim->expires_ns != 0 && (next == 0 || claim->expires_ns < next)) next = claim->expires_ns;
  return next;
}

}  // namespace xschedd
