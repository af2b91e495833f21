#include "daemon/registry/effective.h"

#include <algorithm>
#include <utility>

#include "daemon/config/match.h"

namespace xschedd {
namespace {

const Rule* FirstRule(const Client& client, const Config& config) {
  const ClientIdentity& who = client.identity;
  for (const Rule& rule : config.rules) {
    const bool fits = (!rule.uid || *rule.uid == who.uid) && (!rule.gid || *rule.gid == who.gid) &&
                      (!rule.group || *rule.group == client.group_name) &&
                      (!rule.exe || ExeMatches(*rule.exe, who.exe)) &&
                      (!rule.cgroup || CgroupMatches(*rule.cgroup, who.cgroup)) &&
                      (!rule.container || ContainerMatches(*rule.container, who.cgroup));
    if (fits) return &rule;
  }
  return nullptr;
}

template <typename Value>
struct Chosen {
  Value value;
  PrioritySource source;
};

template <typename Value>
Chosen<Value> Choose(const std::optional<Value>& admin, const std::optional<Value>& claim,
                     const std::optional<Value>& rule, const std::optional<Value>& owner,
                     const std::optional<Value>& hint, Value otherwise) {
  if (admin) return {*admin, PrioritySource::kAdmin};
  if (claim) return {*claim, PrioritySource::kClaim};
  if (rule) return {*rule, PrioritySource::kRule};
  if (owner) return {*owner, PrioritySource::kOwner};
  if (hint) return {*hint, PrioritySource::kHint};
  return {otherwise, PrioritySource::kDefault};
}

// Ranks sources: administrators, then claims, then rules, then users and their programs.
int Authority(PrioritySource source) {
  switch (source) {
    case PrioritySource::kAdmin:
      return 3;
    case PrioritySource::kClaim:
      return 2;
    case PrioritySource::kRule:
      return 1;
    default:
      return 0;
  }
}

bool IsUsersChoice(PrioritySource source, const Rule& rule) {
  const bool is_by_choice = source == PrioritySource::kRule && rule.IsByChoice();
  return source == PrioritySource::kHint || source == PrioritySource::kOwner || is_by_choice;
}

// The most that a value from this source may be.
template <typename Value>
struct Ceilings {
  Value configured;
  std::optional<Value> claims;
  Value own;
};
template <typename Value>
Value CeilingFor(PrioritySource source, const Rule& rule, const Ceilings<Value>& ceilings) {
  if (source == PrioritySource::kAdmin || source == PrioritySource::kClaim) return ceilings.configured;
  if (ceilings.claims) return std::min(ceilings.configured, *ceilings.claims);
  return IsUsersChoice(source, rule) ? ceilings.own : ceilings.configured;
}

}  // namespace

OwnCeiling OwnCeilingOf(std::uint32_t uid, bool may_raise, const Config& config) {
  const std::optional<int> priority = config.PriorityCeiling(uid);
  const std::optional<std::uint32_t> weight = config.WeightCeiling(uid);
  return {.priority = priority.value_or(may_raise ? kPriorityMax : kPriorityDefault),
          .weight = weight.value_or(may_raise ? policy::kWeightLimits.max : policy::kWeightDefault),
          .is_configured = priority && weight};
}

OwnCeiling WithClaim(const OwnCeiling& own, const Claim& claim, std::uint32_t uid, const Config& config) {
  OwnCeiling result = own;
  const OwnCeiling configured = OwnCeilingOf(uid, true, config);
  if (claim.ceiling) result.priority = *claim.ceiling;
  if (claim.priority) result.priority = *claim.priority;
  if (claim.weight_ceiling) result.weight = *claim.weight_ceiling;
  if (claim.weight) result.weight = *claim.weight;
  result.priority = std::min(result.priority, configured.priority);
  result.weight = std::min(result.weight, configured.weight);
  return result;
}

ClientSettings SettingsOf(const Client& client) {
  return {client.admin,         client.admin_weight,      client.owner, client.owner_weight, client.admin_latency,
          client.owner_latency, client.admin_memory_limit};
}

Effective EffectiveOf(const Client& client, const Config& config) {
  return EffectiveOf(client, SettingsOf(client), config);
}

Effective EffectiveOf(const Client& client, const ClientSettings& settings, const Config& config) {
  static const Rule kNoRule;
  const Rule* const fitting = FirstRule(client, config);
  const Rule& rule = fitting != nullptr ? *fitting : kNoRule;
  static const Claim kNoClaim;
  const Claim& claim = client.claim != nullptr ? *client.claim : kNoClaim;
  const auto priority =
      Choose(settings.admin, claim.priority, rule.priority, settings.owner, client.hint, kPriorityDefault);
  const auto weight = Choose(settings.admin_weight, claim.weight, rule.weight, settings.owner_weight,
                             client.hint_weight, policy::kWeightDefault);
  const auto latency = Choose(settings.admin_latency, claim.latency, rule.latency, settings.owner_latency,
                              client.hint_latency, Latency::kAuto);
  const auto memory = Choose<std::uint64_t>(settings.admin_memory_limit, claim.memory_limit, rule.memory_limit,
                                            std::nullopt, std::nullopt, 0);
  const OwnCeiling own = OwnCeilingOf(client.identity.uid, client.identity.may_raise, config);
  const OwnCeiling configured = OwnCeilingOf(client.identity.uid, true, config);
  const int priority_ceiling =
      CeilingFor<int>(priority.source, rule, {configured.priority, claim.ceiling, own.priority});
  const std::uint32_t weight_ceiling =
      CeilingFor<std::uint32_t>(weight.source, rule, {configured.weight, claim.weight_ceiling, own.weight});
  return {.priority = std::min(priority.value, priority_ceiling),
          .source = priority.source,
          .limited = priority.value > priority_ceiling,
          .weight = std::min(weight.value, weight_ceiling),
          .weight_source = weight.source,
          .weight_limited = weight.value > weight_ceiling,
          .latency = latency.value,
          .latency_source = latency.source,
          .memory_limit = memory.value,
          .memory_source = memory.source,
          .metric_class = rule.metric_class.value_or(""),
          .claim = client.claim};
}

GroupValues GroupValuesOf(const Group& group, const OwnEffective& own_of) {
  GroupValues values;
  for (const Client* member : group.clients) {
    if (!member->IsScheduled()) continue;
    const Effective& own = own_of(*member);
    const auto priority = [](const Effective& of) { return std::pair(Authority(of.source), of.priority); };
    const auto weight = [](const Effective& of) { return std::pair(Authority(of.weight_source), of.weight); };
    if (values.priority == nullptr || priority(own) > priority(*values.priority)) values.priority = &own;
    const auto latency = [](const Effective& of) { return std::pair(Authority(of.latency_source), of.latency); };
    if (values.latency == nullptr || latency(own) > latency(*values.latency)) values.latency = &own;
    if (values.weight == nullptr || weight(own) > weight(*values.weight)) values.weight = &own;
  }
  return values;
}

Effective WithGroupValues(const Client& client, const Effective& own, const GroupValues& values) {
  Effective result = own;
  if (!client.IsScheduled() || values.priority == nullptr) return result;
  if (values.priority->priority != own.priority) {
    result.priority = values.priority->priority;
    result.source = PrioritySource::kGroup;
    result.limited = false;
  }
  if (values.weight->weight != own.weight) {
    result.weight = values.weight->weight;
    result.weight_source = PrioritySource::kGroup;
    result.weight_limited = false;
  }
  if (values.latency->latency != own.latency) {
    result.latency = values.latency->latency;
    result.latency_source = PrioritySource::kGroup;
  }
  return result;
}

std::vector<std::string> PassthroughOf(const Client& client, const Config& config) {
  std::vector<std::string> entries = config.passthrough;
  if (const Rule* const rule = FirstRule(client, config)) {
    entries.insert(entries.end(), rule->passthrough.begin(), rule->passthrough.end());
  }
  return entries;
}

GroupNamer GroupNamerOf(const Client& client, const Config& config) {
  if (client.claim != nullptr && !client.claim->group.empty()) return GroupNamer::kClaims;
  const Rule* const rule = FirstRule(client, config);
  return rule != nullptr && rule->join && !rule->IsByChoice() ? GroupNamer::kRule : GroupNamer::kClient;
}

std::string GroupNameOf(const Client& client, const Config& config) {
  if (client.claim != nullptr && !client.claim->group.empty()) return client.claim->group;
  const Rule* const rule = FirstRule(client, config);
  if (rule == nullptr || !rule->join) return client.group_name;
  if (*rule->join == kJoinNone) return {};
  // A client whose cgroup cannot be read stays as it is.
  if (*rule->join == kJoinCgroup) return client.identity.cgroup.empty() ? client.group_name : client.identity.cgroup;
  return *rule->join;
}

}  // namespace xschedd
