#include "daemon/registry/effective_words.h"

namespace xschedd {
namespace {

// What was hinted, and why something else counts.
struct Hinted {
  std::string hint;
  std::string effective;
  bool is_limited;
  bool is_ceiling_configured;
  PrioritySource source;
};

std::string NoteOf(const Hinted& what, std::uint32_t uid) {
  if (what.hint == what.effective) return {};
  if (what.is_limited) {
    return " hint " + what.hint + " limited to " + what.effective + " by " +
           CeilingText(uid, what.is_ceiling_configured);
  }
  if (what.source == PrioritySource::kGroup)
    return " hint " + what.hint + " not used: that of its group is " + what.effective;
  const std::string_view who = what.source == PrioritySource::kRule    ? "a rule of the configuration"
                               : what.source == PrioritySource::kOwner ? "its user"
                                                                       : "an administrator";
  return " hint " + what.hint + " not used: " + std::string(who) + " set " + what.effective;
}

}  // namespace

std::string_view SourceText(PrioritySource source) {
  switch (source) {
    case PrioritySource::kDefault:
      return "default";
    case PrioritySource::kAdmin:
      return "administrator";
    case PrioritySource::kRule:
      return "rule";
    case PrioritySource::kHint:
      return "hint";
    case PrioritySource::kOwner:
      return "owner";
    case PrioritySource::kGroup:
      return "group";
  }
  return "unknown";
}

std::string CeilingText(std::uint32_t uid, bool is_configured) {
  const std::string whose = "ceiling of uid " + std::to_string(uid);
  if (is_configured) return "the " + whose;
  return "the default " + whose +
         " (users lower and do not raise; an administrator can, or a [[rule]] or [[ceiling]] of the configuration)";
}

std::string HintNote(const Client& client, const Config& config) {
  const Effective& now = client.effective;
  const std::uint32_t uid = client.identity.uid;
  std::string priority;
  std::string weight;
  if (client.hint) {
    priority = NoteOf({std::to_string(*client.hint), std::to_string(now.priority), now.limited,
                       config.PriorityCeiling(uid).has_value(), now.source},
                      uid);
  }
  if (client.hint_weight) {
    weight = NoteOf({std::to_string(*client.hint_weight), std::to_string(now.weight), now.weight_limited,
                     config.WeightCeiling(uid).has_value(), now.weight_source},
                    uid);
  }
  if (!priority.empty()) priority.insert(0, "priority");
  if (!weight.empty()) weight.insert(0, priority.empty() ? "weight" : "; weight");
  return priority + weight;
}

}  // namespace xschedd
