#include "daemon/registry/effective_words.h"

namespace xschedd {
namespace {

// What was hinted, and why something else counts.
struct Hinted {
  std::string hint;
  std::string effective;
  bool is_limited;
  std::string ceiling;
  PrioritySource source;
};

std::string NoteOf(const Hinted& what, const ClaimPtr& claim) {
  if (what.hint == what.effective) return {};
  if (what.is_limited) {
    return " hint " + what.hint + " limited to " + what.effective + " by " + what.ceiling;
  }
  if (what.source == PrioritySource::kGroup) return " hint " + what.hint + " not used: its group has " + what.effective;
  const std::string who = what.source == PrioritySource::kClaim   ? ClaimText(*claim)
                          : what.source == PrioritySource::kRule  ? "a rule of the configuration"
                          : what.source == PrioritySource::kOwner ? "its user"
                                                                  : "an administrator";
  return " hint " + what.hint + " not used: " + who + " set " + what.effective;
}

// A claim's ceiling limits what ranks below the claim, unless the configured one is lower.
template <typename Value>
std::string CeilingTextFor(const Client& client, PrioritySource source, const std::optional<Value>& claims,
                           const std::optional<Value>& configured) {
  const bool is_above = source == PrioritySource::kAdmin || source == PrioritySource::kClaim;
  if (!is_above && claims && (!configured || *claims <= *configured))
    return "the ceiling of " + ClaimText(*client.claim);
  return CeilingText(client.identity.uid, configured.has_value());
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
    case PrioritySource::kClaim:
      return "claim";
  }
  return "unknown";
}

std::string CeilingText(std::uint32_t uid, bool is_configured) {
  const std::string whose = "ceiling of uid " + std::to_string(uid);
  if (is_configured) return "the " + whose;
  return "the default " + whose +
         " (users can lower and not raise; an administrator can raise, or a [[rule]] or [[ceiling]] of the "
         "configuration)";
}

std::string PriorityCeilingText(const Client& client, const Effective& effective, const Config& config) {
  return CeilingTextFor(client, effective.source, client.claim == nullptr ? std::nullopt : client.claim->ceiling,
                        config.PriorityCeiling(client.identity.uid));
}

std::string WeightCeilingText(const Client& client, const Effective& effective, const Config& config) {
  return CeilingTextFor(client, effective.weight_source,
                        client.claim == nullptr ? std::nullopt : client.claim->weight_ceiling,
                        config.WeightCeiling(client.identity.uid));
}

std::string HintNote(const Client& client, const Config& config) {
  const Effective& now = client.effective;
  std::string priority;
  std::string weight;
  if (client.hint) {
    priority = NoteOf({std::to_string(*client.hint), std::to_string(now.priority), now.limited,
                       PriorityCeilingText(client, now, config), now.source},
                      client.claim);
  }
  if (client.hint_weight) {
    weight = NoteOf({std::to_string(*client.hint_weight), std::to_string(now.weight), now.weight_limited,
                     WeightCeilingText(client, now, config), now.weight_source},
                    client.claim);
  }
  if (!priority.empty()) priority.insert(0, "priority");
  if (!weight.empty()) weight.insert(0, priority.empty() ? "weight" : "; weight");
  return priority + weight;
}

}  // namespace xschedd
