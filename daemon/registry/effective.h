// What counts for a client: its priority, its weight and its group.
//
// Priority and weight, each for itself: the administrator's, else that of the first rule that fits, else what the
// client's own user has set, else the client's hint, else the default; limited to the ceiling of the uid, which binds
// administrators, too. The first rule that fits is the only one that is looked at: what it does not set is as without
// rules. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/registry/registry.h"

namespace xschedd {

// What has been set for a client, or would be.
struct ClientSettings {
  std::optional<int> admin;
  std::optional<std::uint32_t> admin_weight;
  std::optional<int> owner;
  std::optional<std::uint32_t> owner_weight;
};
ClientSettings SettingsOf(const Client& client);

Effective EffectiveOf(const Client& client, const Config& config);
// The same if `settings` were set.
Effective EffectiveOf(const Client& client, const ClientSettings& settings, const Config& config);

// What of the client's calls is never gated: what the configuration says for all, and what the rule that fits adds.
std::vector<std::string> PassthroughOf(const Client& client, const Config& config);

// The name of the group that the client belongs to; empty: a group of its own.
std::string GroupNameOf(const Client& client, const Config& config);

}  // namespace xschedd
