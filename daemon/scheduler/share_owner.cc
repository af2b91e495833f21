#include "daemon/scheduler/share_owner.h"

namespace xschedd {

std::string ShareOwnerOf(const ClaimPtr& claim, const ClientIdentity& who) {
  // A container that a user makes is not another owner; otherwise making one would give the user a larger part.
  if (claim == nullptr)
    return "uid " + std::to_string(who.owner) + (IsGiven(who.place) ? " in " + who.place : std::string());
  // All steps of a job are one owner, and so are all containers of a pod.
  if (const std::string job = LabelOf(*claim, "job"); !job.empty()) return "job " + job;
  if (const std::string pod = LabelOf(*claim, "pod"); !pod.empty())
    return "pod " + LabelOf(*claim, "namespace") + "/" + pod;
  if (const std::string user = LabelOf(*claim, "user"); !user.empty()) return "user " + user;
  return "claim " + claim->name;
}

}  // namespace xschedd
