#include "daemon/registry/priorities.h"

#include "daemon/registry/match.h"

namespace xschedd {
namespace {

const Rule* FirstRule(const Client& client, const Config& config) {
  for (const Rule& rule : config.rules) {
    const bool fits = (!rule.uid || *rule.uid == client.identity.uid) &&
                      (!rule.group || *rule.group == client.group_name) &&
                      (!rule.exe || ExeMatches(*rule.exe, client.identity.exe)) &&
                      (!rule.cgroup || CgroupMatches(*rule.cgroup, client.identity.cgroup));
    if (fits) return &rule;
  }
  return nullptr;
}

}  // namespace

Effective EffectivePriority(const Client& client, const Config& config) {
  return EffectivePriority(client, client.admin, config);
}

Effective EffectivePriority(const Client& client, std::optional<int> admin, const Config& config) {
  Effective effective;
  if (admin) {
    effective = {*admin, PrioritySource::kAdmin};
  } else if (const Rule* rule = FirstRule(client, config)) {
    effective = {rule->priority, PrioritySource::kRule};
  } else if (client.hint) {
    effective = {*client.hint, PrioritySource::kHint};
  }
  const int ceiling = config.CeilingOf(client.identity.uid);
  if (effective.priority > ceiling) {
    effective.priority = ceiling;
    effective.limited = true;
  }
  return effective;
}

}  // namespace xschedd
