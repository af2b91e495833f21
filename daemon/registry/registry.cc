#include "daemon/registry/registry.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kShownText = 64;  // of what a client sent and we did not understand

bool AreHexDigits(const std::string& text, std::size_t from, std::size_t count) {
  for (std::size_t i = from; i < from + count; ++i) {
    if (i >= text.size() || std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

std::string PartitionName(const std::string& address, std::size_t place) {
  return place == 0 ? address : address + "/" + std::to_string(place);
}

}  // namespace

bool IsPciAddress(const std::string& text) {
  const bool is_function = AreHexDigits(text, 0, 4) && text.size() >= 12 && text[4] == ':' &&
                           AreHexDigits(text, 5, 2) && text[7] == ':' && AreHexDigits(text, 8, 2) && text[10] == '.' &&
                           AreHexDigits(text, 11, 1);
  if (!is_function) return false;
  if (text.size() == 12) return true;
  return text[12] == '/' && text.size() >= 14 && text.size() <= 17 &&
         std::all_of(text.begin() + 13, text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

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
  client->hint_deadline_us = fresh.hints.deadline_us.value_or(0);
  client->runtime = std::move(fresh.runtime);
  client->route = std::move(fresh.route);
  client->version = std::move(fresh.version);
  client->channel = fresh.channel;
  client->connected_ns = now_ns;
  Client& added = *client;
  Join(added, added.group_name);
  clients_.emplace(added.id, std::move(client));
  return added;
}

bool Registry::Join(Client& client, const std::string& group_name) {
  const bool is_shared = !group_name.empty();
  const Group* const now = client.group;
  if (now != nullptr && now->is_shared == is_shared && (!is_shared || now->name == group_name)) return false;
  Leave(client);
  Group& group = GroupFor(client, group_name);
  client.group = &group;
  group.clients.push_back(&client);
  return true;
}

void Registry::Leave(Client& client) {
  if (client.group == nullptr) return;
  Group& group = *client.group;
  client.group = nullptr;
  std::erase(group.clients, &client);
  if (!group.clients.empty()) return;
  if (group.is_shared) group_by_name_.erase({client.identity.uid, group.name});
  groups_.erase(group.id);
}

Group& Registry::GroupFor(const Client& client, const std::string& name) {
  const auto key = std::pair(client.identity.uid, name);
  if (!name.empty()) {
    const auto known = group_by_name_.find(key);
    if (known != group_by_name_.end()) return *groups_.at(known->second);
  }
  auto group = std::make_unique<Group>();
  group->id = next_group_++;
  group->name = name.empty() ? "pid " + std::to_string(client.identity.pid) : name;
  group->is_shared = !name.empty();
  if (!name.empty()) group_by_name_.emplace(key, group->id);
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
  Leave(client);
  clients_.erase(found);
}

void Registry::Detach(Attachment& attachment) {
  Device& device = *attachment.device;
  const auto owner = device.by_owner.find(attachment.client->identity.owner);
  if (--owner->second == 0) {
    const auto devices = devices_of_.find(owner->first);
    if (--devices->second == 0) devices_of_.erase(devices);
    device.by_owner.erase(owner);
  }
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
    return Fail("device slot " + std::to_string(fresh.slot) + " is attached already", "attach a slot once");
  }
  if (!IsPciAddress(fresh.pci_address)) {
    // Whoever sends much does not get it back: what waits to be read is the daemon's memory.
    return Fail("\"" + CleanText(fresh.pci_address, kShownText) + "\" is not a PCI address",
                "give it as 0000:c1:00.0 or 0000:c1:00.0/1");
  }
  std::transform(fresh.pci_address.begin(), fresh.pci_address.end(), fresh.pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (known != client.attachments.end()) {
    Attachment& restored = *known->second;
    if (NameOf(fresh) != restored.device->pci_address) {
      return Fail("device slot " + std::to_string(fresh.slot) + " was " + restored.device->pci_address +
                      " before the daemon was restarted",
                  "start the program again");
    }
    restored.is_restored = false;
    return &restored;
  }
  if (attachments_ >= kMostAttachments) {
    return Fail("all clients together are on " + std::to_string(attachments_) +
                    " devices, as many as the daemon keeps; this one is not scheduled",
                "end some clients");
  }
  const ClientIdentity& who = client.identity;
  if (WouldExceed(who.owner, fresh, limit)) {
    return Fail("uid " + std::to_string(who.owner) +
                    (who.owner == who.uid ? "" : ", as whose uid " + std::to_string(who.uid) + " counts,") + " has " +
                    std::to_string(devices_of_[who.owner]) + " different GPUs, and may have " + std::to_string(limit),
                "end some clients, or let an administrator raise gpus_per_uid in [quota]");
  }
  Device& device = DeviceFor(fresh);
  if (++device.by_owner[who.owner] == 1) ++devices_of_[who.owner];
  ++attachments_;
  auto attachment = std::make_unique<Attachment>();
  attachment->client = &client;
  attachment->device = &device;
  attachment->slot = fresh.slot;
  device.attachments.push_back(attachment.get());
  Attachment* added = attachment.get();
  client.attachments.emplace(fresh.slot, std::move(attachment));
  UpdateDeadlines(client);
  return added;
}

bool Registry::WouldExceed(std::uint32_t owner, const NewDevice& fresh, std::size_t limit) const {
  const auto devices = devices_of_.find(owner);
  if (devices == devices_of_.end() || devices->second < limit) return false;
  const auto name = KnownName(fresh);
  const auto device = name ? devices_.find(*name) : devices_.end();
  return device == devices_.end() || !device->second->by_owner.contains(owner);
}

Device& Registry::DeviceFor(const NewDevice& fresh) {
  const std::string name = NameOf(fresh);
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

std::optional<std::string> Registry::KnownName(const NewDevice& fresh) const {
  const std::string& address = fresh.pci_address;
  const bool names_partition = address.find('/') != std::string::npos;
  if (names_partition || fresh.uuid.empty()) return address;
  const auto at = uuids_.find(address);
  if (at == uuids_.end()) return std::nullopt;
  const auto found = std::find(at->second.begin(), at->second.end(), fresh.uuid);
  if (found == at->second.end()) return std::nullopt;
  return PartitionName(address, static_cast<std::size_t>(found - at->second.begin()));
}

std::string Registry::NameOf(const NewDevice& fresh) {
  if (auto known = KnownName(fresh)) return *std::move(known);
  const std::string& address = fresh.pci_address;
  const bool has_room = partitions_ < kMostPartitions || ForgetAnAddress();
  std::vector<std::string>& known = uuids_[address];
  std::size_t place = known.size();
  if (!has_room || place >= fresh.most_partitions) {
    for (place = 0; place < known.size() && IsInUse(address, place);)
      ++place;
    if (place == known.size()) {
      if (known.empty()) uuids_.erase(address);
      return address;
    }
    known[place] = fresh.uuid;
  } else {
    known.push_back(fresh.uuid);
    ++partitions_;
  }
  ++partitions_version_;
  return PartitionName(address, place);
}

bool Registry::IsInUse(const std::string& address, std::size_t place) const {
  return devices_.contains(PartitionName(address, place));
}

bool Registry::ForgetAnAddress() {
  for (auto at = uuids_.begin(); at != uuids_.end(); ++at) {
    std::size_t place = 0;
    while (place < at->second.size() && !IsInUse(at->first, place))
      ++place;
    if (place < at->second.size()) continue;
    partitions_ -= at->second.size();
    uuids_.erase(at);
    ++partitions_version_;
    return true;
  }
  return false;
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
    return Fail("the client has " + std::to_string(limit) + " queues, as many as it may",
                "destroy some, or raise queues_per_client in [quota]");
  }
  if (!client.queues.emplace(queue.id, queue).second) {
    return Fail("queue " + std::to_string(queue.id) + " exists already", "name each live queue differently");
  }
  return {};
}

Result<void> Registry::RemoveQueue(Client& client, std::uint64_t queue) {
  const auto found = client.queues.find(queue);
  if (found == client.queues.end()) return Fail("queue " + std::to_string(queue) + " is not known");
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

void Registry::Continue(std::uint64_t next_id, Partitions partitions) {
  next_client_ = std::max(next_client_, next_id);
  uuids_.clear();
  partitions_ = 0;
  for (auto& [address, uuids] : partitions) {
    if (uuids.size() > kMaxPartitions || partitions_ + uuids.size() > kMostPartitions) continue;
    partitions_ += uuids.size();
    uuids_.emplace(address, std::move(uuids));
  }
  ++partitions_version_;
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
