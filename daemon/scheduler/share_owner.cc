#include "daemon/scheduler/share_owner.h"

namespace xschedd {

std::string ShareOwnerOf(const ClaimPtr& claim, const ClientIdentity& who) {
  // A container of a user's own is none of another owner, or it would be a way to a larger part.
  if (claim == nullptr)
    return "uid " + std::to_string(who.owner) + (IsGiven(who.place) ? " in " + who.place : std::string());
  const ClaimLabels& labels = claim->labels;
  const auto value = [&](const char* name) {
    const auto found = labels.find(name);
    return found == labels.end() ? std::string() : found->second;
  };
  // All steps of a job, and all containers of a pod.
  if (const std::string job = value("job"); !job.empty()) return "job " + job;
  if (const std::string pod = value("pod"); !pod.empty()) return "pod " + value("namespace") + "/" + pod;
  if (const std::string user = value("user"); !user.empty()) return "user " + user;
  return "claim " + claim->name;
}

}  // namespace xschedd
