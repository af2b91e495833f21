// What is in effect for a client: its group, and the priority, weight and latency that the group's members share.
//
// A limit of device memory is the administrator's, else the claim's, else the rule's; each client has its own.
//
// Priority, weight and latency are chosen separately. Each is the administrator's setting, else the claim's, else that
// of the first rule that matches, else the one that the client's own user has set, else the client's hint, else the
// default. Priority and weight are limited to the configured ceiling of the uid, which also binds administrators and
// claims. A claim's own ceiling binds everything that ranks below the claim. Where neither the uid nor the claim has a
// ceiling, a client and its user may lower but not raise, as with nice, even through rules that they can choose to
// match, unless the client's process may raise. Only the first rule that matches counts: for what it does not set, no
// other rule is tried.
//
// A group runs as one, so one value of each applies to all its members that have a device: the highest (for latency:
// strict) that administrators set for any of them; if they set none, the highest of claims, then of rules, then of
// users and hints. So a setting by a higher authority for one member binds the whole group, and no other member, even
// one that joins later, can exceed it. A member without a device does not count. Thread rule: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/registry/registry.h"

namespace xschedd {

// What has been set for a client, or is proposed.
struct ClientSettings {
  std::optional<int> admin;
  std::optional<std::uint32_t> admin_weight;
  std::optional<int> owner;
  std::optional<std::uint32_t> owner_weight;
  std::optional<Latency> admin_latency;
  std::optional<Latency> owner_latency;
  std::optional<std::uint64_t> admin_memory_limit;
};
ClientSettings SettingsOf(const Client& client);

// The most that a uid can give itself where no claim says otherwise.
struct OwnCeiling {
  int priority = kPriorityDefault;
  std::uint32_t weight = policy::kWeightDefault;
  bool is_configured = false;  // [[ceiling]] sets both
};
OwnCeiling OwnCeilingOf(std::uint32_t uid, bool may_raise, const Config& config);

// The same for a process that this claim applies to: no user changes what the claim sets.
OwnCeiling WithClaim(const OwnCeiling& own, const Claim& claim, std::uint32_t uid, const Config& config);

// From what was set and hinted for this client alone.
Effective EffectiveOf(const Client& client, const Config& config);
// The same if `settings` were set.
Effective EffectiveOf(const Client& client, const ClientSettings& settings, const Config& config);

// What is in effect for each member alone, and which member's values apply to the whole group; null: no member has a
// device.
using OwnEffective = std::function<const Effective&(const Client&)>;
struct GroupValues {
  const Effective* priority = nullptr;
  const Effective* weight = nullptr;
  const Effective* latency = nullptr;
};
GroupValues GroupValuesOf(const Group& group, const OwnEffective& own_of);
Effective WithGroupValues(const Client& client, const Effective& own, const GroupValues& values);

// Which of the client's calls are never gated: the configuration's entries for all clients, and those of the rule that
// matches.
std::vector<std::string> PassthroughOf(const Client& client, const Config& config);

// The name of the group that the client belongs to; empty: a group of its own.
std::string GroupNameOf(const Client& client, const Config& config);
// Who gave that name.
GroupNamer GroupNamerOf(const Client& client, const Config& config);

}  // namespace xschedd
