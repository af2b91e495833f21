#include "daemon/core.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/byte_size.h"
#include "common/clock.h"
#include "daemon/config/files.h"
#include "daemon/policy/benefit.h"
#include "daemon/registry/pci_address.h"

namespace xschedd {
namespace {

// The most devices of self-tests at one time; nobody needs more.
constexpr std::ptrdiff_t kMaxSelfTestDevices = 64;

// An administrator's change is answered once saved; a user's is saved soon.
Urgency UrgencyFor(const Actor& by) {
  return by.is_admin ? Urgency::kNow : Urgency::kSoon;
}

// Another member of the client's group; null: there is none.
const Client* OtherMember(const Client& client) {
  for (const Client* member : client.group->clients)
    if (member != &client) return member;
  return nullptr;
}

}  // namespace

Result<Config> ConfigSource::Load() const {
  auto config = LoadConfig(path, may_be_absent);
  if (config && software_gpu) config->software_gpu = true;
  if (!config || policy_override.empty()) return config;
  const auto name = policy::NameFrom(policy_override);
  if (!name) return Fail("there is no policy \"" + policy_override + "\"", "choose " + policy::NamesText());
  config->policy.name = *name;
  return config;
}

Core::Core(boost::asio::io_context& io, ConfigSource source, Config config, HostGpus gpus)
    : source_(std::move(source)),
      config_(std::move(config)),
      file_policy_(config_.policy),
      groups_(FindRoleGroups(config_.readers)),
      gpus_(std::move(gpus)),
      check_timer_(io),
      journal_(events_),
      scheduler_(registry_, events_, &MonotonicNs),
      loop_(io, scheduler_, config_.lease_ms),
      memory_(registry_, Metrics().Claims(),
              [this](const Attachment& attachment, std::uint64_t count) { journal_.MemoryRefused(attachment, count); }),
      started_ns_(MonotonicNs()) {
  Metrics().SetUuidOf([this](const std::string& address) {
    return config_.software_gpu || IsSelfTestDevice(address) ? std::string() : gpus_.UuidOf(address);
  });
  scheduler_.OnLate([this](const Client& client) { NoteChange(client, Urgency::kSoon); });
  ApplyPolicy();
}

// ---- sessions

Client& Core::AddClient(NewClient fresh) {
  Identify(fresh.identity);
  Client& client = registry_.Add(std::move(fresh), MonotonicNs());
  SetClaim(client, ClaimOf(client));
  client.own = client.effective = EffectiveOf(client, config_);
  if (client.effective.memory_limit != 0) memory_.WriteUnattached(client);
  registry_.MoveToGroup(client, GroupNameOf(client, config_), GroupNamerOf(client, config_));
  // The same process, whose session had ended: the daemon was disabled, or they lost one another.
  const PastClient* const before = scheduler_.Records().Past().Find(client.identity.pid);
  if (before != nullptr && IsSame(before->identity.key, client.identity.key))
    policy::Recall(client.group->memory.benefit, before->others_mode);
  journal_.Connected(client);
  if (client.channel != nullptr) loop_.Watch(client);
  // A new member may change what the rest of its group may do.
  scheduler_.Changed(client);
  if (observer_ != nullptr) observer_->ClientAdded(client);
  DecideSoon();
  return client;
}

void Core::SetCommand(Client& client, std::string command) {
  client.identity.command = std::move(command);
  // It has an answer, or what it had itself before it connected again.
  if (client.group->memory.benefit->settled != policy::BenefitMemory::Mode::kHeld) return;
  const auto [answer, pid] = AnswerOfSame(client);
  if (answer == policy::BenefitMemory::Mode::kHeld || !policy::Recall(client.group->memory.benefit, answer)) return;
  journal_.Recalled(client, answer, pid);
  scheduler_.Changed(client);
  DecideSoon();
}

// Of those that run and know it, the one that connected last; else of those that ended.
std::pair<policy::BenefitMemory::Mode, std::uint64_t> Core::AnswerOfSame(const Client& client) const {
  const Program program{client.identity, client.principal, client.claim};
  const auto& clients = registry_.Clients();
  const auto found = std::find_if(clients.rbegin(), clients.rend(), [&](const auto& entry) {
    const Client& other = *entry.second;
    return other.group != client.group && policy::IsSettled(*other.group->memory.benefit) &&
           IsSame(program, {other.identity, other.principal, other.claim});
  });
  if (found != clients.rend()) return {found->second->group->memory.benefit->settled, found->second->identity.pid};
  const PastClient* const past = scheduler_.Records().Past().FindSame(program);
  if (past == nullptr) return {policy::BenefitMemory::Mode::kHeld, 0};
  return {past->others_mode, past->identity.pid};
}

void Core::RemoveClient(std::uint64_t client_id, const std::string& why) {
  Client* client = registry_.Find(client_id);
  if (client == nullptr) return;
  journal_.Disconnected(*client, why);
  if (observer_ != nullptr) observer_->ClientGone(*client);
  loop_.Unwatch(client_id);
  scheduler_.Changed(*client);
  scheduler_.Remove(*client);
  const std::uint64_t pid = client->identity.pid;
  const Client* const other = OtherMember(*client);
  registry_.Remove(client_id);
  if (other != nullptr)
    UpdateMembers(*other->group, "pid " + std::to_string(pid) + " has left the group", Journal::LinesOf::kItself);
  DecideSoon();
}

Result<void> Core::AttachDevice(Client& client, NewDevice device) {
  const auto known = client.attachments.find(device.slot);
  const bool is_known = known != client.attachments.end() && known->second->is_restored;
  if (auto confirmed = Confirm(client, device); !confirmed) return confirmed;
  const std::size_t times = client.identity.owner == 0 ? config_.quota.root_times : 1;
  const auto attachment = registry_.Attach(client, std::move(device), config_.quota.gpus_per_uid * times);
  if (!attachment) return tl::unexpected(attachment.error());
  if (is_known) return {};
  const std::uint64_t now = MonotonicNs();
  (*attachment)->history.Begin(now);
  scheduler_.Records().Metrics().Attached(**attachment, now);
  memory_.Begin(**attachment);
  if (MemoryWatch::IsWatched(client)) {
    memory_.LookAt(*(*attachment)->device, now);
    ArmCheckTimer();
  }
  journal_.Attached(**attachment, now);
  if (client.attachments.size() == 1) {
    UpdateMembers(*client.group, "pid " + std::to_string(client.identity.pid) + " of the group has a device",
                  Journal::LinesOf::kItself);
  }
  scheduler_.Changed(client);
  DecideSoon();
  NoteChange(client, Urgency::kSoon);
  return {};
}

Result<void> Core::Confirm(const Client& client, NewDevice& device) const {
  // An invalid address is refused with the client's other mistakes.
  if (config_.software_gpu || !IsPciAddress(device.pci_address)) return {};
  if (IsSelfTestDevice(device.pci_address)) {
    const auto& known = registry_.Devices();
    const auto count =
        std::count_if(known.begin(), known.end(), [](const auto& d) { return IsSelfTestDevice(d.first); });
    if (known.contains(device.pci_address) || count < kMaxSelfTestDevices) return {};
    return Fail("there are " + std::to_string(count) + " devices of self tests already", "try again later");
  }
  auto confirmed = gpus_.Confirm(static_cast<pid_t>(client.identity.pid), std::move(device));
  if (!confirmed) return tl::unexpected(confirmed.error());
  device = std::move(*confirmed);
  return {};
}

Result<void> Core::CreateQueue(Client& client, const Queue& queue) {
  auto added = registry_.AddQueue(client, queue, config_.quota.queues_per_client);
  if (added) journal_.Queue(EventKind::kQueueCreated, client, queue.id);
  return added;
}

Result<void> Core::DestroyQueue(Client& client, std::uint64_t queue) {
  auto removed = registry_.RemoveQueue(client, queue);
  if (removed) journal_.Queue(EventKind::kQueueDestroyed, client, queue);
  return removed;
}

Result<void> Core::SetHints(Client& client, const Hints& hints) {
  if (auto checked = Check(hints); !checked) return checked;
  if (hints.deadline_us) {
    auto set = registry_.SetDeadline(client, *hints.deadline_us, hints.queue);
    if (!set) return set;
    scheduler_.Changed(client);
  }
  if (hints.priority) client.hint = hints.priority;
  if (hints.weight) client.hint_weight = hints.weight;
  if (hints.latency) client.hint_latency = hints.latency;
  UpdateEffective(client, "hint of the client", Journal::LinesOf::kItself);
  DecideSoon();
  NoteChange(client, Urgency::kSoon);
  return {};
}

std::size_t Core::UpdateEffective(Client& client, const std::string& why, Journal::LinesOf lines) {
  client.own = EffectiveOf(client, config_);
  return UpdateMembers(*client.group, why, lines);
}

std::size_t Core::UpdateMembers(const Group& group, const std::string& why, Journal::LinesOf lines) {
  const GroupValues values = GroupValuesOf(group, [](const Client& member) -> const Effective& { return member.own; });
  std::size_t changed = 0;
  for (Client* member : group.clients)
    changed += UpdateMember(*member, WithGroupValues(*member, member->own, values), why, lines) ? 1 : 0;
  return changed;
}

bool Core::UpdateMember(Client& client, const Effective& after, const std::string& why, Journal::LinesOf lines) {
  const Effective before = client.effective;
  if (ClassOf(after) != ClassOf(before)) scheduler_.Records().Metrics().Close(client, MonotonicNs());
  client.effective = after;
  if (policy::QueuePriorityOf(config_.policy, after.priority) !=
      policy::QueuePriorityOf(config_.policy, before.priority)) {
    on_configured_(client.id);
  }
  if (after.memory_limit != before.memory_limit) {
    memory_.WriteUnattached(client);
    are_memory_limits_changed_ = true;
  }
  const bool is_changed = journal_.Changed(client, before, why, lines);
  if (is_changed) scheduler_.Changed(client);
  return is_changed;
}

bool Core::UpdateGroup(Client& client) {
  const std::string name = GroupNameOf(client, config_);
  const std::string before = client.group->name;
  scheduler_.Changed(client);  // for the group that it leaves
  const Client* const other = OtherMember(client);
  if (!registry_.MoveToGroup(client, name, GroupNamerOf(client, config_))) return false;
  if (other != nullptr) UpdateMembers(*other->group, "a member has left the group");
  UpdateMembers(*client.group, "a client has joined the group");
  journal_.GroupChanged(client, before);
  scheduler_.Changed(client);
  return true;
}

// ---- administrators

std::vector<Effective> Core::EffectiveIf(const std::vector<Client*>& clients,
                                         const std::function<ClientSettings(const Client&)>& settings) const {
  std::unordered_map<const Client*, Effective> own;
  for (const Client* client : clients)
    own.emplace(client, EffectiveOf(*client, settings(*client), config_));
  const auto own_of = [&own](const Client& member) -> const Effective& {
    const auto found = own.find(&member);
    return found != own.end() ? found->second : member.own;
  };
  std::unordered_map<const Group*, GroupValues> by_group;
  std::vector<Effective> result;
  for (const Client* client : clients) {
    auto found = by_group.find(client->group);
    if (found == by_group.end()) found = by_group.emplace(client->group, GroupValuesOf(*client->group, own_of)).first;
    result.push_back(WithGroupValues(*client, own.at(client), found->second));
  }
  return result;
}

template <typename Value>
void Core::SetOverride(const std::vector<Client*>& clients, const Override<Value>& change, const Actor& by) {
  journal_.Operation(change.operation, clients, by, OwnerOf(PrincipalOf(by)));
  for (Client* client : clients) {
    std::invoke(by.is_admin ? change.of_admin : change.of_owner, *client) = change.value;
    UpdateEffective(*client, change.why + " " + Text(by), LinesFor(by));
    NoteChange(*client, UrgencyFor(by));
  }
  DecideNow();
}

void Core::SetPriority(const std::vector<Client*>& clients, std::optional<int> priority, const Actor& by) {
  const std::string what = priority ? "set to " + std::to_string(*priority) : "reset";
  SetOverride<int>(clients, {priority, &Client::admin, &Client::owner, "priority " + what, what}, by);
}

void Core::SetWeight(const std::vector<Client*>& clients, std::optional<std::uint32_t> weight, const Actor& by) {
  const std::string what = weight ? "set to " + std::to_string(*weight) : "reset";
  SetOverride<std::uint32_t>(
      clients, {weight, &Client::admin_weight, &Client::owner_weight, "weight " + what, weight ? "set" : "reset"}, by);
}

void Core::SetLatency(const std::vector<Client*>& clients, std::optional<Latency> latency, const Actor& by) {
  const std::string what = latency ? "set to " + std::string(LatencyText(*latency)) : "reset";
  SetOverride<Latency>(clients, {latency, &Client::admin_latency, &Client::owner_latency, "latency " + what, what}, by);
}

void Core::SetMemoryLimit(const std::vector<Client*>& clients, std::optional<std::uint64_t> limit, const Actor& by) {
  const std::string what = !limit ? "reset" : *limit == 0 ? "set to none" : "set to " + ByteSizeText(*limit);
  SetOverride<std::uint64_t>(clients, {limit, &Client::admin_memory_limit, nullptr, "memory limit " + what, what}, by);
}

void Core::SetHold(const std::vector<Client*>& clients, bool hold, const Actor& by) {
  journal_.Operation(hold ? "hold" : "release", clients, by, OwnerOf(PrincipalOf(by)));
  for (Client* client : clients) {
    // Even if nothing changes: it may not be saved yet.
    NoteChange(*client, UrgencyFor(by));
    const bool had = by.is_admin && hold ? client->hold : by.is_admin ? client->IsOnHold() : client->owner_hold;
    if (had == hold) continue;
    if (by.is_admin) client->hold = hold;
    if (!by.is_admin || !hold) client->owner_hold = hold;
    journal_.Hold(*client, hold, by);
    scheduler_.Changed(*client);
  }
  DecideNow();
}

void Core::ApplyPolicy() {
  scheduler_.SetSettings(config_.policy);
  scheduler_.SetEnforcing(config_.enforce);
  ApplyMemoryEnforcing();
  if (!config_.enforce) Journal::ObservesOnly();
  if (config_.policy.guard_ms_per_s == 0 && config_.policy.name != policy::Name::kFifo) {
    Journal::GuardIsOff();
  }
}

void Core::TakePolicyPlaces(const Config& files) {
  const auto take = [&](const std::string& key) {
    if (const auto place = files.places.find(key); place != files.places.end()) config_.places[key] = place->second;
  };
  if (files.policy.name == config_.policy.name) {
    file_policy_.name = config_.policy.name;
    take("policy.name");
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const policy::Value value = policy::Get(row, config_.policy);
    if (value != policy::Get(row, files.policy)) continue;
    (void)policy::Set(row, value, file_policy_);  // it is in force
    take(std::string(row.Section()) + "." + std::string(row.key));
  }
  config_.files = files.files;
}

void Core::SetPolicy(const policy::Settings& settings, const Actor& by, const Config* files) {
  const bool is_other = settings.queue_priority != config_.policy.queue_priority;
  config_.policy = settings;
  if (is_other) on_configured_(0);
  if (files != nullptr) TakePolicyPlaces(*files);
  ApplyPolicy();
  journal_.PolicySet(settings, by);
  DecideNow();
  NoteChange(Urgency::kNow);
}

Result<std::vector<std::string>> Core::Reload(const Actor& by) {
  auto fresh = source_.Load();
  if (!fresh) {
    Journal::ReloadFailed(fresh.error());
    return tl::unexpected(fresh.error());
  }
  std::vector<std::string> notes;
  if (fresh->policy != config_.policy) notes.push_back("policy settings are again those of the files");
  if (fresh->enforce != config_.enforce)
    notes.emplace_back(fresh->enforce ? "decisions are enforced again"
                                      : "observing only from now on: no client is held");
  const bool passes_other = fresh->passthrough != config_.passthrough;
  config_ = std::move(*fresh);
  file_policy_ = config_.policy;
  groups_ = FindRoleGroups(config_.readers);
  if (passes_other) {
    std::string all;
    for (const std::string& entry : config_.passthrough)
      all += (all.empty() ? "" : ", ") + entry;
    notes.push_back("passthrough of all clients is now: " + (all.empty() ? "nothing" : all));
  }
  loop_.SetLease(config_.lease_ms);
  ApplyPolicy();
  std::size_t changed = 0;
  std::size_t moved = 0;
  for (const auto& [id, client] : registry_.Clients()) {
    client->own = EffectiveOf(*client, config_);
    if (UpdateGroup(*client)) ++moved;
  }
  std::unordered_set<const Group*> groups;
  for (const auto& [id, client] : registry_.Clients()) {
    if (groups.insert(client->group).second) changed += UpdateMembers(*client->group, "configuration reloaded");
  }
  notes.push_back("clients whose priority or weight changed: " + std::to_string(changed));
  if (moved != 0) notes.push_back("clients moved to another group: " + std::to_string(moved));
  journal_.Reloaded(source_.path, changed, moved, by);
  if (on_reload_) on_reload_();
  DecideNow();
  NoteChange(Urgency::kNow);
  return notes;
}

void Core::Disable(const Actor& by) {
  if (std::exchange(enabled_, false)) {
    journal_.Disabled(by);
    scheduler_.OpenAll();
    ApplyMemoryEnforcing();
  }
  // Even if nothing changed: it may not be saved yet.
  NoteChange(Urgency::kNow);
}

void Core::Enable(const Actor& by) {
  if (!std::exchange(enabled_, true)) {
    journal_.Enabled(by);
    scheduler_.ResumeDeciding();
    ApplyMemoryEnforcing();
    DecideNow();
  }
  NoteChange(Urgency::kNow);
}

void Core::Stop() {
  is_stopped_ = true;
  check_timer_.cancel();
  scheduler_.OpenAll();
  loop_.Stop();
}

void Core::Refused(const Principal& who, const std::string& why) {
  ++refused_total_;
  journal_.Refused(OwnerOf(who), why);
}

}  // namespace xschedd
