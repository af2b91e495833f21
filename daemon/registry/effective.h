// What is in effect for a client: its group, and the priority, weight and latency that the group's members share.
//
// Priority, weight and latency, each for itself: the administrator's, else that of the client's claim, else that of the
// first rule that fits, else what the client's own user has set, else the client's hint, else the default; the first
// two limited to the configured ceiling of the uid, which binds administrators and claims, too. A claim's own ceiling
// binds all that is below the claim. Where neither the uid nor the claim has one, a client and its user may lower
// themselves and not raise, as with nice, also by rules that they can choose to fit, unless the client's process may
// raise. The first rule that fits is the only one that is looked at: what it does not set is as without rules.
//
// A group runs as one, so one of each counts for all its members that have a device: the highest (strict) of what
// administrators set for any of them; if they set nothing, of what claims say; then of rules; then of what users and
// hints say. So what was set from above for one member binds the whole group, and no member that says something
// else, or joins later, goes beyond it. A member without a device has no say. Thread rule: pure functions.
#pragma once

#include <functional>
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
  std::optional<Latency> admin_latency;
  std::optional<Latency> owner_latency;
};
ClientSettings SettingsOf(const Client& client);

// The most that a uid can give itself where no claim says anything else.
struct OwnCeiling {
  int priority = kPriorityDefault;
  std::uint32_t weight = policy::kWeightDefault;
  bool is_configured = false;  // by a [[ceiling]] for both
};
OwnCeiling OwnCeilingOf(std::uint32_t uid, bool may_raise, const Config& config);

// The same for a process that has this claim: what the claim sets, nobody below it changes.
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

// What of the client's calls is never gated: what the configuration says for all, and what the rule that fits adds.
std::vector<std::string> PassthroughOf(const Client& client, const Config& config);

// The name of the group that the client belongs to; empty: a group of its own.
std::string GroupNameOf(const Client& client, const Config& config);
// Whether that name is its claim's word, and so the same for all clients of whatever claim gives it.
bool IsGroupOfClaims(const Client& client);

}  // namespace xschedd
