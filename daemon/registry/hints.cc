#include "daemon/registry/hints.h"

#include <string>

#include "common/priority.h"
#include "daemon/policy/types.h"

namespace xschedd {
namespace {

tl::unexpected<Error> OutOfRange(const std::string& what, const std::string& min, const std::string& max) {
  return Fail(what + " is out of range", "give a number from " + min + " to " + max);
}

bool IsWithin(std::uint64_t value, policy::Limits limits) {
  return value >= limits.min && value <= limits.max;
}

}  // namespace

Result<void> Check(const Hints& hints) {
  if (hints.priority && !IsPriority(*hints.priority)) {
    return OutOfRange("priority hint " + std::to_string(*hints.priority), std::to_string(kPriorityMin),
                      std::to_string(kPriorityMax));
  }
  if (hints.weight && !IsWithin(*hints.weight, policy::kWeightLimits)) {
    return OutOfRange("weight hint " + std::to_string(*hints.weight), std::to_string(policy::kWeightLimits.min),
                      std::to_string(policy::kWeightLimits.max));
  }
  if (hints.deadline_us.value_or(0) != 0 && !IsWithin(*hints.deadline_us, policy::kDeadlineLimits)) {
    return OutOfRange("deadline hint " + std::to_string(*hints.deadline_us) + " us", "0",
                      std::to_string(policy::kDeadlineLimits.max));
  }
  return {};
}

}  // namespace xschedd
