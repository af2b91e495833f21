#include "daemon/state/saved_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/memory_limit.h"
#include "daemon/build_config.h"
#include "daemon/config/settings_message.h"
#include "daemon/policy/benefit.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

// At most kMaxSavedQueues, those with the shortest deadlines.
std::vector<const Queue*> QueuesWithDeadline(const Client& client) {
  std::vector<const Queue*> queues;
  for (const auto& [id, queue] : client.queues) {
    if (queue.deadline_us != 0) queues.push_back(&queue);
  }
  if (queues.size() <= kMaxSavedQueues) return queues;
  const auto shorter = [](const Queue* a, const Queue* b) {
    return std::pair(a->deadline_us, a->id) < std::pair(b->deadline_us, b->id);
  };
  std::nth_element(queues.begin(), queues.begin() + kMaxSavedQueues, queues.end(), shorter);
  queues.resize(kMaxSavedQueues);
  return queues;
}

}  // namespace

state::Client ToSaved(const Client& client, std::optional<std::uint64_t> channel) {
  state::Client saved;
  const ClientIdentity& who = client.identity;
  saved.set_pid(who.pid);
  saved.set_start_ticks(who.key.start_ticks);
  saved.set_pidfd_inode(who.key.pidfd_inode);
  saved.set_uid(who.uid);
  saved.set_gid(who.gid);
  saved.set_may_raise(who.may_raise);
  saved.set_claim_socket(who.claim_socket);
  saved.set_id(client.id);
  if (client.admin) saved.set_admin_priority(*client.admin);
  if (client.admin_weight) saved.set_admin_weight(*client.admin_weight);
  if (client.admin_memory_limit) saved.set_admin_memory_limit(*client.admin_memory_limit);
  saved.set_hold(client.hold);
  if (client.owner) saved.set_owner_priority(*client.owner);
  if (client.owner_weight) saved.set_owner_weight(*client.owner_weight);
  saved.set_owner_hold(client.owner_hold);
  const auto latency = [](std::optional<Latency> of) {
    return std::string(of ? LatencyText(*of) : std::string_view());
  };
  saved.set_admin_latency(latency(client.admin_latency));
  saved.set_owner_latency(latency(client.owner_latency));
  saved.set_hint_latency(latency(client.hint_latency));
  if (client.hint) saved.set_hint(*client.hint);
  if (client.hint_weight) saved.set_hint_weight(*client.hint_weight);
  saved.set_deadline_us(client.hint_deadline_us);
  saved.set_default_stream_deadline_us(client.default_stream_deadline_us);
  saved.set_group(client.group_name);
  saved.set_runtime(client.runtime);
  saved.set_route(client.route);
  saved.set_version(client.version);
  saved.set_connected_ns(client.connected_ns);
  saved.set_late(client.late_total);
  if (const auto mode = client.group->memory.benefit->settled; mode != policy::BenefitMemory::Mode::kHeld)
    saved.set_others_mode(std::string(policy::ModeText(mode)));
  for (const auto& [slot, attachment] : client.attachments) {
    state::Device& device = *saved.add_devices();
    device.set_slot(slot);
    device.set_pci_address(attachment->device->pci_address);
    device.set_name(attachment->device->name);
    device.set_vendor(attachment->device->vendor);
    device.set_compute_units(attachment->device->compute_units);
    device.set_is_under_mps(attachment->is_under_mps);
  }
  for (const Queue* queue : QueuesWithDeadline(client)) {
    state::Queue& to = *saved.add_queues();
    to.set_id(queue->id);
    to.set_slot(queue->slot);
    to.set_native_priority(queue->native_priority);
    to.set_deadline_us(queue->deadline_us);
  }
  if (channel && client.channel != nullptr) {
    saved.set_channel(*channel);
    saved.set_abi_version(client.channel->Layout().version);
    saved.set_layout_hash(client.channel->Layout().layout_hash);
  }
  return saved;
}

RestoredClient FromSaved(const state::Client& saved) {
  RestoredClient client;
  NewClient& fresh = client.fresh;
  fresh.id = saved.id();
  fresh.identity.pid = saved.pid();
  fresh.identity.key = {saved.start_ticks(), saved.pidfd_inode()};
  fresh.identity.uid = saved.uid();
  fresh.identity.gid = saved.gid();
  fresh.identity.may_raise = saved.may_raise();
  fresh.identity.claim_socket = saved.claim_socket();
  fresh.group_name = CleanText(saved.group(), kMaxGroupNameBytes);
  const auto weight = [](std::uint32_t value) {
    const bool fits = value >= policy::kWeightLimits.min && value <= policy::kWeightLimits.max;
    return fits ? std::optional<std::uint32_t>(value) : std::nullopt;
  };
  if (saved.has_hint() && IsPriority(saved.hint())) fresh.hints.priority = saved.hint();
  if (saved.has_hint_weight()) fresh.hints.weight = weight(saved.hint_weight());
  fresh.hints.latency = LatencyFrom(saved.hint_latency());
  if (saved.deadline_us() <= policy::kDeadlineLimits.max) fresh.hints.deadline_us = saved.deadline_us();
  fresh.runtime = CleanText(saved.runtime(), kMaxWordBytes);
  fresh.route = CleanText(saved.route(), kMaxWordBytes);
  fresh.version = CleanText(saved.version(), kMaxWordBytes);
  ClientSettings& settings = client.set.settings;
  if (saved.has_admin_priority() && IsPriority(saved.admin_priority())) settings.admin = saved.admin_priority();
  if (saved.has_admin_weight()) settings.admin_weight = weight(saved.admin_weight());
  if (saved.has_owner_priority() && IsPriority(saved.owner_priority())) settings.owner = saved.owner_priority();
  if (saved.has_owner_weight()) settings.owner_weight = weight(saved.owner_weight());
  settings.admin_latency = LatencyFrom(saved.admin_latency());
  settings.owner_latency = LatencyFrom(saved.owner_latency());
  // 0: an administrator has lifted it.
  const std::uint64_t limit = saved.admin_memory_limit();
  if (saved.has_admin_memory_limit() && (limit == 0 || CheckMemoryLimit(limit))) settings.admin_memory_limit = limit;
  client.others_mode = policy::ModeFrom(saved.others_mode()).value_or(client.others_mode);
  client.set.hold = saved.hold();
  client.set.owner_hold = saved.owner_hold();
  if (saved.default_stream_deadline_us() <= policy::kDeadlineLimits.max) {
    client.default_stream_deadline_us = saved.default_stream_deadline_us();
  }
  for (const state::Device& device : saved.devices()) {
    client.devices.push_back({.slot = device.slot(),
                              .pci_address = device.pci_address(),
                              .name = CleanText(device.name(), kMaxNameBytes),
                              .vendor = CleanText(device.vendor(), kMaxVendorBytes),
                              .compute_units = device.compute_units(),
                              .uuid = {},
                              .is_under_mps = device.is_under_mps()});
  }
  for (const state::Queue& queue : saved.queues()) {
    if (queue.deadline_us() > policy::kDeadlineLimits.max) continue;
    client.queues.push_back({.id = queue.id(),
                             .slot = queue.slot(),
                             .native_priority = queue.native_priority(),
                             .deadline_us = queue.deadline_us(),
                             .is_restored = true});
  }
  client.connected_ns = saved.connected_ns();
  client.late_total = saved.late();
  return client;
}

state::Claim ToSaved(const Claim& claim) {
  state::Claim saved;
  saved.set_id(claim.id);
  saved.set_name(claim.name);
  saved.set_cgroup(claim.cgroup);
  saved.set_cgroup_inode(claim.cgroup_inode);
  if (claim.priority) saved.set_priority(*claim.priority);
  if (claim.ceiling) saved.set_ceiling(*claim.ceiling);
  if (claim.weight) saved.set_weight(*claim.weight);
  if (claim.weight_ceiling) saved.set_weight_ceiling(*claim.weight_ceiling);
  if (claim.latency) saved.set_latency(std::string(LatencyText(*claim.latency)));
  if (claim.memory_limit) saved.set_memory_limit(*claim.memory_limit);
  saved.set_group(claim.group);
  for (const auto& [name, value] : claim.labels)
    (*saved.mutable_labels())[name] = value;
  saved.set_ttl_ns(claim.ttl_ns);
  saved.set_expires_ns(claim.expires_ns);
  saved.set_has_socket(claim.has_socket);
  return saved;
}

Claim FromSaved(const state::Claim& saved) {
  Claim claim;
  claim.id = saved.id();
  claim.name = saved.name();
  claim.cgroup = saved.cgroup();
  claim.cgroup_inode = saved.cgroup_inode();
  if (saved.has_priority()) claim.priority = saved.priority();
  if (saved.has_ceiling()) claim.ceiling = saved.ceiling();
  if (saved.has_weight()) claim.weight = saved.weight();
  if (saved.has_weight_ceiling()) claim.weight_ceiling = saved.weight_ceiling();
  claim.latency = LatencyFrom(saved.latency());
  if (saved.has_memory_limit()) claim.memory_limit = saved.memory_limit();
  claim.group = saved.group();
  claim.labels = {saved.labels().begin(), saved.labels().end()};
  claim.ttl_ns = saved.ttl_ns();
  claim.expires_ns = saved.expires_ns();
  claim.has_socket = saved.has_socket();
  return claim;
}

state::ClaimUsage ToSaved(const ClaimAccount& account) {
  state::ClaimUsage saved;
  saved.set_gpu_ns(account.usage.gpu_ns);
  saved.set_held_ns(account.usage.held_ns);
  saved.set_launches(account.usage.launches);
  saved.set_untracked_ns(account.usage.untracked_ns);
  saved.set_memory_refused(account.usage.memory_refused);
  saved.set_memory_peak_bytes(account.memory_peak_bytes);
  saved.set_began_unix_ms(account.began_unix_ms);
  return saved;
}

ClaimAccount FromSaved(const state::ClaimUsage& saved) {
  ClaimAccount account;
  account.usage.gpu_ns = saved.gpu_ns();
  account.usage.held_ns = saved.held_ns();
  account.usage.launches = saved.launches();
  account.usage.untracked_ns = saved.untracked_ns();
  account.usage.memory_refused = saved.memory_refused();
  account.memory_peak_bytes = saved.memory_peak_bytes();
  account.began_unix_ms = saved.began_unix_ms();
  return account;
}

state::EndedClaim ToSavedEnded(const ClaimAccount& account) {
  state::EndedClaim saved;
  saved.set_id(account.claim->id);
  saved.set_name(account.claim->name);
  for (const auto& [name, value] : account.claim->labels)
    (*saved.mutable_labels())[name] = value;
  *saved.mutable_usage() = ToSaved(account);
  saved.set_ended_unix_ms(account.ended_unix_ms);
  saved.set_end_order(account.end_order);
  saved.set_end_reason(account.end_reason);
  return saved;
}

std::optional<ClaimAccount> FromSaved(const state::EndedClaim& saved) {
  Claim claim;
  claim.id = saved.id();
  claim.name = saved.name();
  claim.labels = {saved.labels().begin(), saved.labels().end()};
  claim.has_socket = true;  // for Check: it has no cgroup any more
  if (!Check(claim) || claim.id == 0 || saved.end_order() == 0) return std::nullopt;
  ClaimAccount account = FromSaved(saved.usage());
  account.claim = std::make_shared<const Claim>(std::move(claim));
  account.ended_unix_ms = saved.ended_unix_ms();
  account.end_order = saved.end_order();
  account.end_reason = CleanText(saved.end_reason(), kMaxEndReasonBytes);
  return account;
}

void FillClaimPart(const Core& core, std::uint64_t id, state::SavedState& saved) {
  const ClaimAccount* const account = core.Accounts().Find(id);
  if (const ClaimPtr claim = core.Claims().FindId(id)) {
    *saved.add_claims() = ToSaved(*claim);
    if (account != nullptr) *saved.mutable_claims()->rbegin()->mutable_usage() = ToSaved(*account);
  } else if (account != nullptr && account->end_order != 0) {
    *saved.add_ended_claims() = ToSavedEnded(*account);
  }
}

state::Policy ToSaved(const policy::Settings& settings) {
  state::Policy saved;
  saved.set_name(std::string(policy::Text(settings.name)));
  PutSettings(settings, saved);
  return saved;
}

std::optional<policy::Settings> FromSaved(const state::Policy& saved) {
  const auto name = policy::NameFrom(saved.name());
  if (!name) return std::nullopt;
  policy::Settings settings;
  settings.name = *name;
  for (const policy::SettingRow& row : policy::kSettings) {
    // A value out of range keeps the default.
    if (const auto value = FindSetting(row, saved); value && *value) (void)policy::Set(row, **value, settings);
  }
  return settings;
}

policy::Settings AfterRestart(const policy::Settings& live, const policy::Settings& then, const policy::Settings& now) {
  policy::Settings settings = now;
  if (then.name == now.name) settings.name = live.name;
  for (const policy::SettingRow& row : policy::kSettings) {
    if (policy::Get(row, then) == policy::Get(row, now)) (void)policy::Set(row, policy::Get(row, live), settings);
  }
  return settings;
}

void FillSaved(const Core& core, state::SavedState& saved) {
  saved.set_daemon_version(kDaemonVersion);
  saved.set_next_client(core.Clients().NextId());
  *saved.mutable_policy() = ToSaved(core.Settings().policy);
  *saved.mutable_file_policy() = ToSaved(core.FilePolicy());
  saved.set_draining(!core.IsEnabled());
  saved.set_restarts(core.Restarts());
}

void FillPartitions(const Partitions& partitions, state::SavedState& saved) {
  for (const auto& [address, uuids] : partitions) {
    state::Partitions& to = *saved.add_partitions();
    to.set_pci_address(address);
    for (const std::string& uuid : uuids)
      to.add_uuids(uuid);
  }
}

Partitions PartitionsFrom(const state::SavedState& saved) {
  Partitions partitions;
  for (const state::Partitions& from : saved.partitions())
    partitions[from.pci_address()] = {from.uuids().begin(), from.uuids().end()};
  return partitions;
}

}  // namespace xschedd
