#include "daemon/registry/registry.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "daemon/registry/pci_address.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kShownBytes = 64;  // of a client's text that is quoted in an error

}  // namespace

Moment Attachment::MomentAt(std::uint64_t now_ns) const {
  return {now_ns, client->channel == nullptr ? 0 : client->channel->Ledger().GpuTimeNs(slot)};
}

Client& Registry::Add(NewClient fresh, std::uint64_t now_ns) {
  auto client = std::make_unique<Client>();
  client->id = fresh.id != 0 ? fresh.id : next_client_;
  next_client_ = std::max(next_client_, client->id + 1);
  client->identity = std::move(fresh.identity);
  client->group_name = std::move(fresh.group_name);
  client->hint = fresh.hints.priority;
  client->hint_weight = fresh.hints.weight;
  client->hint_latency = fresh.hints.latency;
  client->own_memory_limit = fresh.own_memory_limit;
  client->hint_deadline_us = fresh.hints.deadline_us.value_or(0);
  client->runtime = std::move(fresh.runtime);
  client->route = std::move(fresh.route);
  client->version = std::move(fresh.version);
  client->channel = fresh.channel;
  client->connected_ns = now_ns;
  Client& added = *client;
  SetClaim(added, nullptr);
  MoveToGroup(added, added.group_name);
  clients_.emplace(added.id, std::move(client));
  return added;
}

bool Registry::MoveToGroup(Client& client, const std::string& group_name, GroupNamer namer) {
  std::optional<GroupKey> key;
  if (!group_name.empty()) {
    key = GroupKey{client.identity.uid, {}, group_name};
    if (namer == GroupNamer::kClaims) key->uid.reset();
    if (namer == GroupNamer::kClient) key->place = client.principal->place;
  }
  if (client.group != nullptr && client.group->key == key) return false;
  LeaveGroup(client);
  Group& group = FindOrMakeGroup(client, key);
  client.group = &group;
  group.clients.push_back(&client);
  return true;
}

void Registry::LeaveGroup(Client& client) {
  if (client.group == nullptr) return;
  Group& group = *client.group;
  client.group = nullptr;
  std::erase(group.clients, &client);
  if (!group.clients.empty()) return;
  if (group.key) group_by_key_.erase(*group.key);
  groups_.erase(group.id);
}

Group& Registry::FindOrMakeGroup(const Client& client, const std::optional<GroupKey>& key) {
  if (key) {
    const auto known = group_by_key_.find(*key);
    if (known != group_by_key_.end()) return *groups_.at(known->second);
  }
  auto group = std::make_unique<Group>();
  group->id = next_group_++;
  group->name = key ? key->name : "pid " + std::to_string(client.identity.pid);
  group->key = key;
  if (key) group_by_key_.emplace(*key, group->id);
  Group& added = *group;
  groups_.emplace(added.id, std::move(group));
  return added;
}

void Registry::Remove(std::uint64_t client_id) {
  const auto found = clients_.find(client_id);
  if (found == clients_.end()) return;
  Client& client = *found->second;
  for (auto& [slot, attachment] : client.attachments)
    Detach(*attachment);
  LeaveGroup(client);
  clients_.erase(found);
}

void Registry::Detach(Attachment& attachment) {
  Device& device = *attachment.device;
  Uncount(device, attachment.payer.uid);
  if (!attachment.payer.place.empty()) Uncount(device, attachment.payer);
  --attachments_;
  std::erase(device.attachments, &attachment);
  if (device.attachments.empty()) devices_.erase(std::string(device.pci_address));
}

Result<Attachment*> Registry::Attach(Client& client, NewDevice fresh, std::size_t limit) {
  if (fresh.slot >= abi::kMaxDevices) {
    return Fail("device slot " + std::to_string(fresh.slot) + " is out of range", "use slots 0 to 63");
  }
  const auto known = client.attachments.find(fresh.slot);
  if (known != client.attachments.end() && !known->second->is_restored) {
    return Fail("device slot " + std::to_string(fresh.slot) + " is attached already", "attach each slot once");
  }
  if (!IsPciAddress(fresh.pci_address)) {
    // Cut, since the answer takes the daemon's memory until the client reads it.
    return Fail("\"" + CleanText(fresh.pci_address, kShownBytes) + "\" is not a PCI address",
                "give it as 0000:c1:00.0 or 0000:c1:00.0/1");
  }
  std::transform(fresh.pci_address.begin(), fresh.pci_address.end(), fresh.pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (known != client.attachments.end()) {
    Attachment& restored = *known->second;
    if (names_.NameFor(fresh, devices_) != restored.device->pci_address) {
      return Fail("device slot " + std::to_string(fresh.slot) + " was " + restored.device->pci_address +
                      " before the daemon was restarted",
                  "start the program again");
    }
    restored.is_restored = false;
    return &restored;
  }
  if (attachments_ >= kMaxAttachments) {
    return Fail("all clients together have " + std::to_string(attachments_) +
                    " devices, as many as the daemon keeps; this one is not scheduled",
                "end some clients");
  }
  const ClientIdentity& who = client.identity;
  const Principal payer = PayerOf(client);
  const bool is_place = !payer.place.empty() && WouldExceed(payer, fresh, PlaceLimit(limit));
  if (is_place || WouldExceed(payer.uid, fresh, limit)) {
    const Principal whose = is_place ? payer : Principal(payer.uid);
    const std::string subordinate =
        who.owner == who.uid ? "" : " (with its subordinate uid " + std::to_string(who.uid) + ")";
    return Fail(Text(whose) + subordinate + " is on " + std::to_string(device_count_[whose]) +
                    " different GPUs, and may be on " + std::to_string(is_place ? PlaceLimit(limit) : limit),
                "end some clients, or let an administrator raise gpus_per_uid in [quota]");
  }
  Device& device = FindOrMakeDevice(fresh);
  Count(device, payer.uid);
  if (!payer.place.empty()) Count(device, payer);
  ++attachments_;
  auto attachment = std::make_unique<Attachment>();
  attachment->payer = payer;
  attachment->client = &client;
  attachment->device = &device;
  attachment->slot = fresh.slot;
  attachment->is_under_mps = fresh.is_under_mps;
  device.attachments.push_back(attachment.get());
  Attachment* added = attachment.get();
  client.attachments.emplace(fresh.slot, std::move(attachment));
  UpdateDeadlines(client);
  return added;
}

Principal Registry::PayerOf(const Client& client) {
  const Principal& principal = *client.principal;
  return IsGiven(principal.place) ? principal : Principal(principal.uid);
}

void Registry::Count(Device& device, const Principal& payer) {
  if (++device.by_payer[payer] == 1) ++device_count_[payer];
}

void Registry::Uncount(Device& device, const Principal& payer) {
  const auto found = device.by_payer.find(payer);
  if (--found->second != 0) return;
  device.by_payer.erase(found);
  const auto devices = device_count_.find(payer);
  if (--devices->second == 0) device_count_.erase(devices);
}

bool Registry::WouldExceed(const Principal& payer, const NewDevice& fresh, std::size_t limit) const {
  const auto devices = device_count_.find(payer);
  if (devices == device_count_.end() || devices->second < limit) return false;
  const auto name = names_.Find(fresh);
  const auto device = name ? devices_.find(*name) : devices_.end();
  return device == devices_.end() || !device->second->by_payer.contains(payer);
}

Device& Registry::FindOrMakeDevice(const NewDevice& fresh) {
  const std::string name = names_.NameFor(fresh, devices_);
  std::unique_ptr<Device>& device = devices_[name];
  if (device == nullptr) {
    device = std::make_unique<Device>();
    device->pci_address = name;
    device->shared_address = std::make_shared<const std::string>(name);
    device->name = fresh.name;
    device->vendor = fresh.vendor;
    device->compute_units = fresh.compute_units;
  }
  return *device;
}

Result<void> Registry::AddQueue(Client& client, const Queue& queue, std::size_t limit) {
  if (queue.slot >= abi::kMaxDevices) {
    return Fail(
        "queue " + std::to_string(queue.id) + ": device slot " + std::to_string(queue.slot) + " is out of range",
        "use slots 0 to 63");
  }
  const auto known = client.queues.find(queue.id);
  if (known != client.queues.end() && known->second.is_restored) {
    const std::uint64_t deadline_us = known->second.deadline_us;
    known->second = queue;
    known->second.deadline_us = deadline_us;
    UpdateDeadlines(client);
    return {};
  }
  if (client.queues.size() >= limit) {
    return Fail("the client has " + std::to_string(limit) + " queues, the most that a client may have",
                "destroy some, or raise queues_per_client in [quota]");
  }
  if (!client.queues.emplace(queue.id, queue).second) {
    return Fail("queue " + std::to_string(queue.id) + " exists already", "name each live queue differently");
  }
  return {};
}

Result<void> Registry::RemoveQueue(Client& client, std::uint64_t queue) {
  const auto found = client.queues.find(queue);
  if (found == client.queues.end())
    return Fail("queue " + std::to_string(queue) + " is not known", "remove each queue once");
  const bool had_deadline = found->second.deadline_us != 0;
  client.queues.erase(found);
  if (had_deadline) UpdateDeadlines(client);
  return {};
}

void Registry::RemoveRestoredQueues(Client& client) {
  if (std::erase_if(client.queues, [](const auto& entry) { return entry.second.is_restored; }) != 0)
    UpdateDeadlines(client);
}

Result<void> Registry::SetDeadline(Client& client, std::uint64_t deadline_us, std::optional<std::uint64_t> queue) {
  if (!queue) {
    client.hint_deadline_us = deadline_us;
  } else if (const auto found = client.queues.find(*queue); found != client.queues.end()) {
    found->second.deadline_us = deadline_us;
  } else if (*queue == kDefaultStream) {
    client.default_stream_deadline_us = deadline_us;
  } else {
    return Fail("queue " + std::to_string(*queue) + " is not known", "give a deadline to a queue that was created");
  }
  UpdateDeadlines(client);
  return {};
}

void Registry::UpdateDeadlines(Client& client) {
  const auto shorter = [](std::uint64_t a, std::uint64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; };
  const std::uint64_t everywhere = shorter(client.hint_deadline_us, client.default_stream_deadline_us);
  for (const auto& [slot, attachment] : client.attachments)
    attachment->deadline_after_ns = everywhere * policy::kNsPerUs;
  for (const auto& [id, queue] : client.queues) {
    const auto attachment = client.attachments.find(queue.slot);
    if (attachment == client.attachments.end()) continue;
    std::uint64_t& after = attachment->second->deadline_after_ns;
    after = shorter(after, queue.deadline_us * policy::kNsPerUs);
  }
}

void Registry::Restore(std::uint64_t next_id, const Partitions& partitions) {
  next_client_ = std::max(next_client_, next_id);
  names_.Restore(partitions);
}

Client* Registry::Find(std::uint64_t client_id) {
  const auto found = clients_.find(client_id);
  return found == clients_.end() ? nullptr : found->second.get();
}

std::vector<Client*> Registry::FindPid(std::uint64_t pid) const {
  std::vector<Client*> found;
  for (const auto& [id, client] : clients_) {
    if (client->identity.pid == pid) found.push_back(client.get());
  }
  return found;
}

}  // namespace xschedd
