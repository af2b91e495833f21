// The records of clients, groups, devices and queues, and the links between them. It enforces the limits per client and
// user. It makes no decisions (scheduler) and does not communicate (sessions, admin). Thread rule: the daemon's one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/result.h"
#include "daemon/registry/client.h"
#include "daemon/registry/device.h"
#include "daemon/registry/limits.h"
#include "daemon/registry/partition_names.h"

namespace xschedd {

class Registry {
 public:
  // `channel` must stay until Remove. The client has no devices yet.
  Client& Add(NewClient client, std::uint64_t now_ns);
  // Moves the client to the group with this name, which `namer` gave; empty: a group of its own. False: it is there
  // already. A group without members is removed.
  bool MoveToGroup(Client& client, const std::string& group_name, GroupNamer namer = GroupNamer::kClient);
  // Removes the client, and the group and devices that nobody else uses.
  void Remove(std::uint64_t client_id);

  // Refuses a slot that is out of range or in use, and a malformed address. partition_names.h names devices. A slot
  // that was restored after a restart is attached already; the client confirms it by reporting it as it was. `limit`:
  // how many different devices the clients of one user (ClientIdentity::owner) may use; those in a place that only root
  // makes may use as many as PlaceLimit (principal.h) says.
  Result<Attachment*> Attach(Client& client, NewDevice device, std::size_t limit = kMaxAttachments);

  // Refuses an id in use, a slot out of range, and more than `limit` queues. A restored queue is treated as in Attach.
  Result<void> AddQueue(Client& client, const Queue& queue, std::size_t limit);
  // Refuses an unknown id.
  Result<void> RemoveQueue(Client& client, std::uint64_t queue);
  // Removes the restored queues that the client has not reported again.
  void RemoveRestoredQueues(Client& client);
  // Without `queue`: for all queues without a deadline of their own. 0: none. Refuses an unknown id; the default
  // stream, 0, need not have been created.
  Result<void> SetDeadline(Client& client, std::uint64_t deadline_us, std::optional<std::uint64_t> queue);

  // What a restart must not change: the next client's id, and the names of partitions.
  std::uint64_t NextId() const { return next_client_; }
  const PartitionNames& Names() const { return names_; }
  void Restore(std::uint64_t next_id, const Partitions& partitions);

  Client* Find(std::uint64_t client_id);
  std::vector<Client*> FindPid(std::uint64_t pid) const;

  const std::map<std::uint64_t, std::unique_ptr<Client>>& Clients() const { return clients_; }
  const xschedd::Devices& Devices() const { return devices_; }

 private:
  static void UpdateDeadlines(Client& client);
  void LeaveGroup(Client& client);
  Group& FindOrMakeGroup(const Client& client, const std::optional<GroupKey>& key);
  void Detach(Attachment& attachment);
  // Whose quota an attachment of the client counts against: places that users can make have none of their own.
  static Principal PayerOf(const Client& client);
  // Whether `payer` would then use more than `limit` different devices.
  bool WouldExceed(const Principal& payer, const NewDevice& device, std::size_t limit) const;
  void Count(Device& device, const Principal& payer);
  void Uncount(Device& device, const Principal& payer);
  Device& FindOrMakeDevice(const NewDevice& device);

  std::uint64_t next_client_ = 1;
  std::uint64_t next_group_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Group>> groups_;  // by id
  std::map<GroupKey, std::uint64_t> group_by_key_;
  xschedd::Devices devices_;
  PartitionNames names_;
  std::size_t attachments_ = 0;
  std::map<Principal, std::size_t> device_count_;  // different devices of each of Device::by_payer
};

}  // namespace xschedd
