// What exists: clients, groups, devices, queues. It keeps records and their links and enforces the per-client limits;
// it decides nothing (scheduler) and speaks to nobody (ipc).
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/priority.h"
#include "common/result.h"
#include "daemon/policy/types.h"
#include "daemon/registry/burst_clock.h"
#include "daemon/registry/channel.h"
#include "daemon/registry/gpu_account.h"
#include "daemon/registry/hints.h"
#include "daemon/registry/history.h"
#include "daemon/registry/limits.h"
#include "daemon/registry/metered.h"
#include "daemon/registry/process_key.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {

struct Client;
struct Cluster;
struct Device;

// One client on one device: what the policy calls a tenant, with the daemon's own accounts of it.
struct Attachment {
  Client* client = nullptr;
  Device* device = nullptr;
  std::uint32_t slot = 0;
  bool is_restored = false;  // from before a restart; its client has not told of it again yet
  bool busy = false;         // and counted
  bool waits = false;        // busy, and its host waits for the device
  bool silent = false;  // busy as its client said last, which has not been heard of since (Client::silent_since_ns)
  std::uint64_t idle_since_ns = 0;  // 0: never was busy
  std::uint64_t busy_since_ns = 0;  // of the present burst
  BurstClock burst;
  GpuAccount gpu;  // while tracked
  // CLOCK_MONOTONIC: by when the most urgent unfinished work is wanted; 0: none has a deadline, or it is idle.
  std::uint64_t deadline_ns = 0;
  // The shortest deadline of its hints, from becoming busy; 0: none.
  std::uint64_t deadline_after_ns = 0;
  policy::Gate gate;
  Reason reason;                    // of the gate
  std::uint64_t held_since_ns = 0;  // busy and held since; 0: it is not
  std::uint64_t held_ns = 0;        // ended spans of the above
  // The gatherer's: its place in the device's cluster; whether it is among the touched there.
  std::uint32_t index = 0;
  bool touched = false;
  History history;
  Metered metered;

  // For the history: the time, and the GPU time that the client's ledger shows.
  Moment MomentAt(std::uint64_t now_ns) const;
};

inline constexpr std::uint64_t kDefaultStream = 0;  // a Queue::id

struct Queue {
  std::uint64_t id = 0;
  std::uint32_t slot = 0;
  std::int32_t native_priority = 0;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
  std::uint64_t deadline_us = 0;  // hint, in place of the client's own; 0: none
  bool is_restored = false;       // as in Attachment
};

struct Group {
  std::uint64_t id = 0;    // grows with arrival
  std::string name;        // as listed; of a client without a group: its pid
  bool is_shared = false;  // others of its uid can join it by its name
  std::vector<Client*> clients;
  policy::GroupMemory memory;
  std::uint64_t visited = 0;  // the gatherer's mark while it makes a cluster
};

struct Device {
  std::string pci_address;  // its name: with "/N" for a partition but the first of a PCI function
  std::shared_ptr<const std::string> shared_address;  // for the event log, which outlives the device
  std::string name;
  std::string vendor;
  std::uint32_t compute_units = 0;
  std::vector<Attachment*> attachments;           // in order of arrival
  std::map<std::uint32_t, std::size_t> by_owner;  // how many of them each user has
  policy::DeviceMemory memory;
  // The gatherer's: see Group; the place in its cluster, and that; null: it must be made.
  std::uint64_t visited = 0;
  std::uint32_t index = 0;
  Cluster* cluster = nullptr;
  // The scheduler's: whether it waits for a decision, since when (a transition; 0: not for one), and when the decision
  // must be looked at again.
  bool dirty = false;
  std::uint64_t seen_ns = 0;
  std::uint64_t next_look_ns = policy::kNever;
  std::uint32_t metered = kNoAccount;  // the meter's: its place there; none: found when it is needed
};

enum class PrioritySource { kDefault, kAdmin, kRule, kHint, kOwner, kGroup };

// What counts (effective.h).
struct Effective {
  int priority = kPriorityDefault;
  PrioritySource source = PrioritySource::kDefault;
  bool limited = false;  // by a ceiling
  std::uint32_t weight = policy::kWeightDefault;
  PrioritySource weight_source = PrioritySource::kDefault;
  bool weight_limited = false;
  Latency latency = Latency::kAuto;
  PrioritySource latency_source = PrioritySource::kDefault;
  std::string metric_class;  // as a rule says; empty: by its priority (telemetry/meter.h)
};

// Who a client is; from the kernel and constant, but for `command`, which arrives later.
struct ClientIdentity {
  std::uint64_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t owner = 0;  // as whom it counts where users are limited (Quotas::OwnerOf)
  std::uint32_t gid = 0;
  std::string exe;
  std::string cgroup;
  bool may_raise = false;  // root, the daemon's own user, or in group xschedd (registry/roles.h)
  std::string command;
  ProcessKey key;
};

// Of a client whose deadlines always pass, so many are told; all are counted.
inline constexpr double kLateLinesPerSecond = 2;
inline constexpr double kLateLinesBurst = 20;

// Calls let through ungated, by passthrough rule as it is written.
using PassedCounts = std::map<std::string, std::uint64_t>;
inline constexpr std::size_t kMostPassedRules = 64;  // of one client; the rest is counted in the ledger alone

struct Client {
  std::uint64_t id = 0;
  ClientIdentity identity;
  Group* group = nullptr;
  std::string group_name;  // as the client gave it; empty: a group of its own
  std::string runtime;
  std::string route;
  std::string version;
  std::optional<int> hint;
  std::optional<int> admin;
  std::optional<std::uint32_t> hint_weight;
  std::optional<Latency> hint_latency;
  std::uint64_t hint_deadline_us = 0;            // of queues that have none of their own; 0: none
  std::uint64_t default_stream_deadline_us = 0;  // the same of the default streams, which are not in `queues`
  std::optional<std::uint32_t> admin_weight;
  std::optional<Latency> admin_latency;
  // What the client's own user has set through client.sock.
  std::optional<int> owner;
  std::optional<std::uint32_t> owner_weight;
  std::optional<Latency> owner_latency;
  Effective own;            // what was set and said for it alone
  Effective effective;      // what counts: among the members of its group that have a device, one value for all
  bool hold = false;        // by an administrator
  bool owner_hold = false;  // by its own user
  std::uint64_t connected_ns = 0;
  std::map<std::uint32_t, std::unique_ptr<Attachment>> attachments;  // by slot
  std::map<std::uint64_t, Queue> queues;
  Channel* channel = nullptr;       // of its connection; null for a client without shared memory: it cannot be gated
  std::uint32_t flagged_gates = 0;  // the scheduler's: how many of its gates bind; while there is one, so is a lease
  // Of a busy client: what its ledger's counter of renewals was, and when it was another; since when it is overdue, so
  // that it does not count as busy; 0: it is not.
  std::uint64_t renewals = 0;
  std::uint64_t renewed_ns = 0;
  std::uint64_t silent_since_ns = 0;
  std::uint64_t late_total = 0;  // bursts that finished after their deadline
  PassedCounts passed;           // as the client tells it
  TokenBucket late_lines{kLateLinesPerSecond, kLateLinesBurst};

  bool IsOnHold() const { return hold || owner_hold; }
  // It has a device, and can be gated there.
  bool IsScheduled() const { return channel != nullptr && !attachments.empty(); }
};

struct NewClient {
  std::uint64_t id = 0;  // that it had before a restart; 0: the next one
  ClientIdentity identity;
  std::string group_name;
  Hints hints;  // in range
  std::string runtime;
  std::string route;
  std::string version;
  Channel* channel = nullptr;
};

struct NewDevice {
  std::uint32_t slot = 0;
  std::string pci_address;
  std::string name;
  std::string vendor;
  std::uint32_t compute_units = 0;
  std::string uuid;  // as the runtime names it; empty: not known
  std::uint32_t most_partitions = 64;
};

// The uuids that were seen at each PCI address, in the order in which they were first seen.
using Partitions = std::unordered_map<std::string, std::vector<std::string>>;

class Registry {
 public:
  // `channel` must stay until Remove. The client has no devices yet.
  Client& Add(NewClient client, std::uint64_t now_ns);
  // Puts the client into the group of its uid with this name; empty: a group of its own. True: it was in another. A
  // group that nobody is in any more goes.
  bool Join(Client& client, const std::string& group_name);
  // Gone from its group and devices; devices and groups that nobody uses any more go, too.
  void Remove(std::uint64_t client_id);

  // Refuses a slot that is out of range or in use, and an address that is not one. A device is known by its address
  // and, where the client gives one, its uuid: several on one PCI function are named ADDRESS, ADDRESS/1, ... in the
  // order in which they were first seen; a name that nobody uses is given to another only when there is no other left.
  // A client that gives the "/N" itself keeps it; one that gives neither means the first. A slot that was restored is
  // there already: told again as it was, it is the client's again. `limit`: how many different devices the clients of
  // one user (ClientIdentity::owner) are on.
  Result<Attachment*> Attach(Client& client, NewDevice device, std::size_t limit = kMostAttachments);

  // Refuses an id in use, a slot out of range, and more than `limit` queues. As in Attach for one that was restored.
  Result<void> AddQueue(Client& client, const Queue& queue, std::size_t limit);
  // Refuses an id that is not known.
  Result<void> RemoveQueue(Client& client, std::uint64_t queue);
  // Those from before a restart that the client has not told of again.
  void RemoveRestoredQueues(Client& client);
  // Without `queue`: of all queues that have none of their own. 0: none. Refuses an id that is not known; the default
  // stream, 0, need not have been created.
  Result<void> SetDeadline(Client& client, std::uint64_t deadline_us, std::optional<std::uint64_t> queue);

  // What a restart must not change: by which number the next client goes, and how partitions are named.
  std::uint64_t NextId() const { return next_client_; }
  const Partitions& KnownPartitions() const { return uuids_; }
  // Another after each change of these.
  std::uint64_t PartitionsVersion() const { return partitions_version_; }
  void Continue(std::uint64_t next_id, Partitions partitions);

  Client* Find(std::uint64_t client_id);
  std::vector<Client*> FindPid(std::uint64_t pid) const;

  const std::map<std::uint64_t, std::unique_ptr<Client>>& Clients() const { return clients_; }
  const std::map<std::string, std::unique_ptr<Device>>& Devices() const { return devices_; }

 private:
  Group& GroupFor(const Client& client, const std::string& name);
  void Leave(Client& client);
  static constexpr std::size_t kMaxPartitions = 64;  // of an address

  static void UpdateDeadlines(Client& client);
  void Detach(Attachment& attachment);
  // Whether the user would be on more different devices than `limit`.
  bool WouldExceed(std::uint32_t owner, const NewDevice& fresh, std::size_t limit) const;
  Device& DeviceFor(const NewDevice& fresh);
  // By which name the device goes; KnownName: if it has been given one, or needs none.
  std::string NameOf(const NewDevice& fresh);
  std::optional<std::string> KnownName(const NewDevice& fresh) const;
  // Forgets names that nobody uses, all of one address, or fails.
  bool ForgetAnAddress();
  bool IsInUse(const std::string& address, std::size_t place) const;

  std::uint64_t next_client_ = 1;
  std::uint64_t next_group_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Group>> groups_;              // by id
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> group_by_name_;  // uid and name
  std::map<std::string, std::unique_ptr<Device>> devices_;                        // by name
  Partitions uuids_;                                                              // the place is the N
  std::size_t partitions_ = 0;                                                    // in it
  std::uint64_t partitions_version_ = 0;
  std::size_t attachments_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> devices_of_;  // by owner: on how many different ones its clients are
};

// "0000:c1:00.0", with "/N" for a partition. Hexadecimal digits, lower or upper case.
bool IsPciAddress(const std::string& text);

}  // namespace xschedd
