// Clients, groups and queues: who a client is, what it asked for, what others set for it, and what is in effect.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/latency.h"
#include "common/priority.h"
#include "daemon/policy/queue_priority.h"
#include "daemon/policy/types.h"
#include "daemon/registry/attachment.h"
#include "daemon/registry/cgroups.h"
#include "daemon/registry/channel.h"
#include "daemon/registry/claim.h"
#include "daemon/registry/hints.h"
#include "daemon/registry/principal.h"
#include "daemon/registry/process_key.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {

struct Client;

inline constexpr std::uint64_t kDefaultStream = 0;  // a Queue::id

struct Queue {
  std::uint64_t id = 0;
  std::uint32_t slot = 0;
  std::int32_t native_priority = 0;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
  std::uint64_t deadline_us = 0;  // a hint that replaces the client's; 0: none
  bool is_restored = false;       // as in Attachment
};

// Who names a client's group, and so how far the name reaches: the client (within its uid and place), a rule that users
// cannot choose to match (within its uid, on the host and in all places), or claims (all claims that give the name).
enum class GroupNamer { kClient, kRule, kClaims };

// Identifies a group. The same name given by another uid, or in another place, is another group.
struct GroupKey {
  std::optional<std::uint32_t> uid;  // none: claims gave the name, to clients of any principal
  std::string place;                 // as in Principal; empty for a rule's name as well
  std::string name;

  auto operator<=>(const GroupKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

struct Group {
  std::uint64_t id = 0;         // in order of arrival
  std::string name;             // as listed; for a client without a group "pid 4711"
  std::optional<GroupKey> key;  // by which other clients join it; none: for one client alone
  std::vector<Client*> clients;
  policy::GroupMemory memory;
  std::uint64_t visited = 0;  // the gatherer's mark while it builds a cluster
};

enum class PrioritySource { kDefault, kAdmin, kRule, kHint, kOwner, kGroup, kClaim };

// What is in effect for a client (effective.h).
struct Effective {
  int priority = kPriorityDefault;
  PrioritySource source = PrioritySource::kDefault;
  bool limited = false;  // by a ceiling
  std::uint32_t weight = policy::kWeightDefault;
  PrioritySource weight_source = PrioritySource::kDefault;
  bool weight_limited = false;
  Latency latency = Latency::kAuto;
  PrioritySource latency_source = PrioritySource::kDefault;
  // Most bytes of device memory on each device; 0: no limit. A claim's is for all its clients together. A group does
  // not share it.
  std::uint64_t memory_limit = 0;
  PrioritySource memory_source = PrioritySource::kDefault;
  std::string metric_class;  // given by a rule; empty: derived from the priority (telemetry/meter.h)
  ClaimPtr claim;            // the client's; null: it has none
};

// What the kernel says about a client's process. Constant, except for `command`, which is read later.
struct ClientIdentity {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t owner = 0;  // the user whose limits apply (Quotas::OwnerOf)
  std::uint32_t gid = 0;
  std::string exe;
  std::string cgroup;
  std::string place;               // regardless of claims (ProcessInfo)
  bool is_cgroup_exact = false;    // as in ProcessInfo
  CgroupLineage cgroup_lineage;    // when it connected; empty: not known
  std::uint64_t claim_socket = 0;  // the id of the claim through whose socket it connected; 0: through client.sock
  bool may_raise = false;          // as MayRaise says (registry/roles.h)
  std::string command;             // empty: not read yet, or it has none
  ProcessKey key;
};

// Limits the events and log lines about a client that keeps missing deadlines; all misses are counted.
inline constexpr double kLateLinesPerSecond = 2;
inline constexpr double kLateLinesBurst = 20;

// The same for allocations that are refused because of a limit.
inline constexpr double kMemoryLinesPerSecond = 0.1;

// How many calls went through ungated, by the passthrough rule that matched, as written in the configuration.
using PassedCounts = std::map<std::string, std::uint64_t>;
// Per client; calls that match further rules count only in the ledger's total.
inline constexpr std::size_t kMaxPassedRules = 64;

// What became of the queue priority that the daemon wants (daemon/policy/queue_priority.h), as the client claims.
struct QueuePriorityReport {
  policy::QueuePriority priority = policy::QueuePriority::kProgram;
  std::uint32_t queues = 0;
  std::uint32_t in_force = 0;  // of these
};

struct Client {
  std::uint64_t id = 0;
  ClientIdentity identity;
  Group* group = nullptr;
  std::string group_name;  // as the client gave it; empty: a group of its own
  ClaimPtr claim;          // null: none applies
  PrincipalPtr principal;  // `owner` of its identity, and its place; set by SetClaim
  std::string runtime;
  std::string route;
  std::string version;
  std::uint64_t own_memory_limit = 0;  // bytes, its process's own, which its shim applies; 0: none
  std::optional<int> hint;
  std::optional<int> admin;
  std::optional<std::uint32_t> hint_weight;
  std::optional<Latency> hint_latency;
  std::uint64_t hint_deadline_us = 0;            // for queues without a deadline of their own; 0: none
  std::uint64_t default_stream_deadline_us = 0;  // for default streams, which are not in `queues`; 0: none
  std::optional<std::uint32_t> admin_weight;
  std::optional<Latency> admin_latency;
  std::optional<std::uint64_t> admin_memory_limit;  // bytes; 0: none, whatever claims and rules say
  // Set by the client's own user through client.sock.
  std::optional<int> owner;
  std::optional<std::uint32_t> owner_weight;
  std::optional<Latency> owner_latency;
  Effective own;            // from what was set and hinted for this client alone
  Effective effective;      // in effect: the same for all members of its group that have a device
  bool hold = false;        // by an administrator
  bool owner_hold = false;  // by its own user
  std::uint64_t connected_ns = 0;
  std::map<std::uint32_t, std::unique_ptr<Attachment>> attachments;  // by slot
  std::map<std::uint64_t, Queue> queues;
  Channel* channel = nullptr;  // its connection's; null: no shared memory, so it cannot be gated
  // For the gate writer only: how many gates are held or tracked. While there is one, the lease is renewed.
  std::uint32_t flagged_gates = 0;
  // For a busy client: its ledger's renewal counter as last read, when that last changed, and since when the client is
  // silent, so that it does not count as busy (0: it is not silent).
  std::uint64_t renewals = 0;
  std::uint64_t renewed_ns = 0;
  std::uint64_t silent_since_ns = 0;
  std::uint64_t late_total = 0;  // bursts that finished after their deadline
  PassedCounts passed;           // as reported by the client
  QueuePriorityReport queue_priority;
  TokenBucket late_lines{kLateLinesPerSecond, kLateLinesBurst};
  TokenBucket memory_lines{kMemoryLinesPerSecond, 1};

  bool IsOnHold() const { return hold || owner_hold; }
  // Whether it has a device and can be gated there.
  bool IsScheduled() const { return channel != nullptr && !attachments.empty(); }
};

// Gives the client this claim (null: none) and the principal that follows from it.
inline void SetClaim(Client& client, ClaimPtr claim) {
  const ClientIdentity& who = client.identity;
  Principal principal(who.owner, PlaceWithClaim(who.claim_socket, claim, who.place));
  client.claim = std::move(claim);
  if (client.principal == nullptr || *client.principal != principal)
    client.principal = std::make_shared<const Principal>(std::move(principal));
}

struct NewClient {
  std::uint64_t id = 0;  // its id before a restart; 0: the next free one
  ClientIdentity identity;
  std::string group_name;
  Hints hints;  // in range
  std::string runtime;
  std::string route;
  std::string version;
  std::uint64_t own_memory_limit = 0;
  Channel* channel = nullptr;
};

}  // namespace xschedd
