#include "daemon/core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/clock.h"

namespace xschedd {
namespace {

// Self-tests that run at the same time; more are somebody's who has nothing to test.
constexpr std::ptrdiff_t kMostPretended = 64;

std::string By(const Actor& actor) {
  return (actor.is_admin ? "by uid " : "by its user, uid ") + std::to_string(actor.uid) + " (pid " +
         std::to_string(actor.pid) + (actor.login_uid ? ", login uid " + std::to_string(*actor.login_uid) : "") + ")";
}

// The same for a line of the log.
std::string ByFields(const Actor& actor) {
  return "by_uid=" + std::to_string(actor.uid) + " by_pid=" + std::to_string(actor.pid) +
         " login_uid=" + (actor.login_uid ? std::to_string(*actor.login_uid) : "none");
}

// Of the clients that an operation is about, so many are named in its line.
constexpr std::size_t kNamedClients = 16;

// A user's are saved soon; an administrator is answered when they are saved.
Urgency UrgencyFor(const Actor& by) {
  return by.is_admin ? Urgency::kNow : Urgency::kSoon;
}

// `note`: for the end of the line.
bool TakeLine(UidLines& lines, std::uint32_t owner, std::uint64_t now_ns, std::string& note) {
  const auto left_out = lines.Take(owner, now_ns);
  note = left_out.value_or(0) == 0 ? "" : " lines_left_out_of_this_user=" + std::to_string(*left_out);
  return left_out.has_value();
}

std::string_view SourceText(PrioritySource source) {
  switch (source) {
    case PrioritySource::kDefault:
      return "default";
    case PrioritySource::kAdmin:
      return "administrator";
    case PrioritySource::kRule:
      return "rule";
    case PrioritySource::kHint:
      return "hint";
    case PrioritySource::kOwner:
      return "owner";
    case PrioritySource::kGroup:
      return "group";
  }
  return "unknown";
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

std::string CeilingText(std::uint32_t uid, bool is_configured) {
  const std::string whose = "ceiling of uid " + std::to_string(uid);
  if (is_configured) return "the " + whose;
  return "the default " + whose +
         " (users lower and do not raise; an administrator can, or a [[rule]] or [[ceiling]] of the configuration)";
}

Core::Core(boost::asio::io_context& io, ConfigSource source, Config config, HostGpus gpus)
    : source_(std::move(source)),
      config_(std::move(config)),
      file_policy_(config_.policy),
      groups_(FindRoleGroups(config_.readers)),
      gpus_(std::move(gpus)),
      scheduler_(registry_, events_, &MonotonicNs),
      loop_(io, scheduler_, config_.lease_ms),
      started_ns_(MonotonicNs()) {
  scheduler_.OnLate([this](const Client& client) { NoteChange(client, Urgency::kSoon); });
  UsePolicy();
}

// ---- sessions

Client& Core::AddClient(NewClient fresh) {
  fresh.identity.owner = OwnerOf(fresh.identity.uid);
  Client& client = registry_.Add(std::move(fresh), MonotonicNs());
  client.own = client.effective = EffectiveOf(client, config_);
  registry_.Join(client, GroupNameOf(client, config_));
  const ClientIdentity& who = client.identity;
  if (std::string note; TakeLine(client_lines_, who.owner, MonotonicNs(), note)) {
    SPDLOG_INFO("client connected id={} pid={} uid={} exe=\"{}\" cgroup=\"{}\" group=\"{}\" priority={} source={}{}{}",
                client.id, who.pid, who.uid, who.exe, who.cgroup, client.group->name, client.effective.priority,
                SourceText(client.effective.source), client.channel == nullptr ? " shared_memory=no" : "", note);
  }
  events_.Add(ClientEvent(EventKind::kClientConnected, client, MonotonicNs(), who.exe));
  if (client.channel != nullptr) loop_.Watch(client);
  // A member of a group may change what the group's others may do.
  scheduler_.Changed(client);
  if (observer_ != nullptr) observer_->ClientAdded(client);
  loop_.DecideSoon();
  return client;
}

void Core::RemoveClient(std::uint64_t client_id, const std::string& why) {
  Client* client = registry_.Find(client_id);
  if (client == nullptr) return;
  if (std::string note; TakeLine(client_lines_, client->identity.owner, MonotonicNs(), note)) {
    SPDLOG_INFO("client gone id={} pid={} uid={} reason=\"{}\"{}", client->id, client->identity.pid,
                client->identity.uid, why, note);
  }
  events_.Add(ClientEvent(EventKind::kClientGone, *client, MonotonicNs(), why));
  if (observer_ != nullptr) observer_->ClientGone(*client);
  loop_.Unwatch(client_id);
  scheduler_.Changed(*client);
  scheduler_.Leaving(*client);
  const std::uint64_t pid = client->identity.pid;
  Client* stays = nullptr;
  for (Client* member : client->group->clients)
    if (member != client) stays = member;
  registry_.Remove(client_id);
  if (stays != nullptr)
    UpdateMembers(*stays->group, "pid " + std::to_string(pid) + " has left the group", LinesOf::kItself);
  loop_.DecideSoon();
}

Result<void> Core::AttachDevice(Client& client, NewDevice device) {
  const auto known = client.attachments.find(device.slot);
  const bool is_known = known != client.attachments.end() && known->second->is_restored;
  if (auto confirmed = Confirm(client, device); !confirmed) return confirmed;
  const std::size_t times = client.identity.owner == 0 ? config_.quota.root_times : 1;
  const auto attachment = registry_.Attach(client, std::move(device), config_.quota.gpus_per_uid * times);
  if (!attachment) return tl::unexpected(attachment.error());
  if (is_known) return {};
  const Device& attached = *(*attachment)->device;
  const std::uint64_t now = MonotonicNs();
  if (std::string note; TakeLine(client_lines_, client.identity.owner, now, note)) {
    SPDLOG_INFO("device attached pid={} slot={} device={} name=\"{}\"{}", client.identity.pid, (*attachment)->slot,
                attached.pci_address, attached.name, note);
  }
  (*attachment)->history.Begin(now);
  scheduler_.Metrics().Attached(**attachment, now);
  Event event = DeviceEvent(EventKind::kDeviceAttached, **attachment, now);
  event.text = attached.name;
  events_.Add(std::move(event));
  if (client.attachments.size() == 1) {
    UpdateMembers(*client.group, "pid " + std::to_string(client.identity.pid) + " of the group has a device",
                  LinesOf::kItself);
  }
  scheduler_.Changed(client);
  loop_.DecideSoon();
  NoteChange(client, Urgency::kSoon);
  return {};
}

Result<void> Core::Confirm(const Client& client, NewDevice& device) const {
  // What is no address at all is refused with the client's other mistakes.
  if (config_.software_gpu || !IsPciAddress(device.pci_address)) return {};
  if (IsPretended(device.pci_address)) {
    const auto& known = registry_.Devices();
    const auto pretended =
        std::count_if(known.begin(), known.end(), [](const auto& d) { return IsPretended(d.first); });
    if (known.contains(device.pci_address) || pretended < kMostPretended) return {};
    return Fail("there are " + std::to_string(pretended) + " pretended devices already", "try again later");
  }
  auto confirmed = gpus_.Confirm(static_cast<pid_t>(client.identity.pid), std::move(device));
  if (!confirmed) return tl::unexpected(confirmed.error());
  device = std::move(*confirmed);
  return {};
}

Result<void> Core::CreateQueue(Client& client, const Queue& queue) {
  auto added = registry_.AddQueue(client, queue, config_.quota.queues_per_client);
  if (added) {
    events_.Add(ClientEvent(EventKind::kQueueCreated, client, MonotonicNs(), "queue " + std::to_string(queue.id)));
  }
  return added;
}

Result<void> Core::DestroyQueue(Client& client, std::uint64_t queue) {
  auto removed = registry_.RemoveQueue(client, queue);
  if (removed) {
    events_.Add(ClientEvent(EventKind::kQueueDestroyed, client, MonotonicNs(), "queue " + std::to_string(queue)));
  }
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
  UpdateEffective(client, "hint of the client", LinesOf::kItself);
  loop_.DecideSoon();
  NoteChange(client, Urgency::kSoon);
  return {};
}

std::string Core::HintNote(const Client& client) const {
  const Effective& now = client.effective;
  const auto note = [&client](const std::string& hint, const std::string& effective, bool limited, bool is_configured,
                              PrioritySource source) {
    if (hint == effective) return std::string();
    if (limited) {
      return " hint " + hint + " limited to " + effective + " by " + CeilingText(client.identity.uid, is_configured);
    }
    if (source == PrioritySource::kGroup) return " hint " + hint + " not used: that of its group is " + effective;
    const std::string_view who = source == PrioritySource::kRule    ? "a rule of the configuration"
                                 : source == PrioritySource::kOwner ? "its user"
                                                                    : "an administrator";
    return " hint " + hint + " not used: " + std::string(who) + " set " + effective;
  };
  std::string priority;
  std::string weight;
  if (client.hint)
    priority = note(std::to_string(*client.hint), std::to_string(now.priority), now.limited,
                    config_.PriorityCeiling(client.identity.uid).has_value(), now.source);
  if (client.hint_weight) {
    weight = note(std::to_string(*client.hint_weight), std::to_string(now.weight), now.weight_limited,
                  config_.WeightCeiling(client.identity.uid).has_value(), now.weight_source);
  }
  if (!priority.empty()) priority.insert(0, "priority");
  if (!weight.empty()) weight.insert(0, priority.empty() ? "weight" : "; weight");
  return priority + weight;
}

std::size_t Core::UpdateEffective(Client& client, const std::string& why, LinesOf lines) {
  client.own = EffectiveOf(client, config_);
  return UpdateMembers(*client.group, why, lines);
}

std::size_t Core::UpdateMembers(const Group& group, const std::string& why, LinesOf lines) {
  const Together together = TogetherOf(group, [](const Client& member) -> const Effective& { return member.own; });
  std::size_t changed = 0;
  for (Client* member : group.clients)
    changed += UpdateMember(*member, InGroup(*member, member->own, together), why, lines) ? 1 : 0;
  return changed;
}

bool Core::UpdateMember(Client& client, const Effective& after, const std::string& why, LinesOf lines) {
  const Effective before = client.effective;
  if (ClassOf(after) != ClassOf(before)) scheduler_.Metrics().Close(client, MonotonicNs());
  client.effective = after;
  const bool reranked = after.priority != before.priority;
  const bool reweighted = after.weight != before.weight;
  const bool relaxed = after.latency != before.latency;
  std::string note;
  const bool told = (reranked || reweighted || relaxed) && TakeDetail(lines, client, note);
  if (reranked) {
    if (told) {
      SPDLOG_INFO("priority changed pid={} from={} to={} source={} limited={} reason=\"{}\"{}", client.identity.pid,
                  before.priority, after.priority, SourceText(after.source), after.limited, why, note);
    }
    events_.Add(ClientEvent(EventKind::kPriority, client, MonotonicNs(), why));
  }
  if (reweighted) {
    if (told) {
      SPDLOG_INFO("weight changed pid={} from={} to={} source={} limited={} reason=\"{}\"{}", client.identity.pid,
                  before.weight, after.weight, SourceText(after.weight_source), after.weight_limited, why, note);
    }
    events_.Add(ClientEvent(EventKind::kWeight, client, MonotonicNs(), why));
  }
  if (relaxed) {
    const std::string latency(LatencyText(after.latency));
    if (told) {
      SPDLOG_INFO("latency changed pid={} to={} source={} reason=\"{}\"{}", client.identity.pid, latency,
                  SourceText(after.latency_source), why, note);
    }
    events_.Add(ClientEvent(EventKind::kLever, client, MonotonicNs(), "latency " + latency + ": " + why));
  }
  if (reranked || reweighted || relaxed) scheduler_.Changed(client);
  return reranked || reweighted || relaxed;
}

bool Core::TakeDetail(LinesOf lines, const Client& client, std::string& note) {
  if (lines == LinesOf::kItself) return TakeLine(client_lines_, client.identity.owner, MonotonicNs(), note);
  return detail_lines_.Take(MonotonicNs());
}

bool Core::UpdateGroup(Client& client) {
  const std::string name = GroupNameOf(client, config_);
  const std::string before = client.group->name;
  scheduler_.Changed(client);  // those that it leaves
  Client* stays = nullptr;
  for (Client* member : client.group->clients)
    if (member != &client) stays = member;
  if (!registry_.Join(client, name)) return false;
  if (stays != nullptr) UpdateMembers(*stays->group, "a member has left the group");
  UpdateMembers(*client.group, "a client has joined the group");
  if (std::string note; TakeDetail(LinesOf::kOperation, client, note)) {
    SPDLOG_INFO("group changed pid={} from=\"{}\" to=\"{}\"", client.identity.pid, before, client.group->name);
  }
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
  std::unordered_map<const Group*, Together> together;
  std::vector<Effective> result;
  for (const Client* client : clients) {
    auto found = together.find(client->group);
    if (found == together.end()) found = together.emplace(client->group, TogetherOf(*client->group, own_of)).first;
    result.push_back(InGroup(*client, own.at(client), found->second));
  }
  return result;
}

template <typename Value>
void Core::SetOverride(const std::vector<Client*>& clients, const Override<Value>& change, const Actor& by) {
  NoteOperation(change.operation, clients, by);
  for (Client* client : clients) {
    client->*(by.is_admin ? change.of_admin : change.of_owner) = change.value;
    UpdateEffective(*client, change.why + " " + By(by), LinesFor(by));
    NoteChange(*client, UrgencyFor(by));
  }
  loop_.DecideNow();
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

void Core::SetHold(const std::vector<Client*>& clients, bool hold, const Actor& by) {
  NoteOperation(hold ? "hold" : "release", clients, by);
  for (Client* client : clients) {
    // Also where nothing changes: it may not be saved yet.
    NoteChange(*client, UrgencyFor(by));
    const bool had = by.is_admin && hold ? client->hold : by.is_admin ? client->IsOnHold() : client->owner_hold;
    if (had == hold) continue;
    if (by.is_admin) client->hold = hold;
    if (!by.is_admin || !hold) client->owner_hold = hold;
    events_.Add(ClientEvent(hold ? EventKind::kHold : EventKind::kRelease, *client, MonotonicNs(), By(by)));
    scheduler_.Changed(*client);
  }
  loop_.DecideNow();
}

// However many clients it is about, it is one line; a user's are limited like all that users cause.
void Core::NoteOperation(const std::string& what, const std::vector<Client*>& clients, const Actor& by) {
  std::string note;
  if (!by.is_admin && !TakeLine(client_lines_, OwnerOf(by.uid), MonotonicNs(), note)) return;
  std::string pids;
  for (std::size_t i = 0; i < clients.size() && i < kNamedClients; ++i)
    pids += (i == 0 ? "" : ",") + std::to_string(clients[i]->identity.pid);
  if (clients.size() > kNamedClients) pids += ",...";
  SPDLOG_INFO("{} clients={} pid={} {}{}", what, clients.size(), pids, ByFields(by), note);
}

void Core::UsePolicy() {
  scheduler_.SetSettings(config_.policy);
  if (config_.policy.guard_ms_per_s == 0 && config_.policy.name != policy::Name::kFifo) {
    SPDLOG_WARN(
        "the starvation guard is off: a less important client may starve, and a more important one that waits for it "
        "(a pipe, a barrier) waits for ever; `xschedctl policy set --guard 10ms`, or guard_ms_per_s, turns it on");
  }
}

void Core::SetPolicy(const policy::Settings& settings, const Actor& by) {
  config_.policy = settings;
  UsePolicy();
  const std::string what = "policy " + std::string(policy::Text(settings.name)) + " " + By(by);
  std::string all;
  for (const policy::SettingRow& row : policy::kSettings)
    all += " " + std::string(row.key) + "=" + policy::Text(row, policy::Get(row, settings));
  SPDLOG_INFO("policy set name={}{} {}", policy::Text(settings.name), all, ByFields(by));
  Event event;
  event.kind = EventKind::kPolicy;
  event.time_ns = MonotonicNs();
  event.text = what;
  events_.Add(std::move(event));
  loop_.DecideNow();
  NoteChange(Urgency::kNow);
}

Result<std::vector<std::string>> Core::Reload(const Actor& by) {
  auto fresh = source_.Load();
  if (!fresh) {
    SPDLOG_ERROR("reload failed, the old configuration stays error=\"{}\"", fresh.error().Line());
    return tl::unexpected(fresh.error());
  }
  std::vector<std::string> notes;
  if (fresh->policy != config_.policy) notes.push_back("policy settings are those of the file again");
  const bool passes_other = fresh->passthrough != config_.passthrough;
  config_ = std::move(*fresh);
  file_policy_ = config_.policy;
  groups_ = FindRoleGroups(config_.readers);
  if (passes_other) {
    std::string all;
    for (const std::string& entry : config_.passthrough)
      all += (all.empty() ? "" : ", ") + entry;
    notes.push_back("passed through, for all clients: " + (all.empty() ? "nothing" : all));
  }
  loop_.SetLease(config_.lease_ms);
  UsePolicy();
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
  SPDLOG_INFO("configuration reloaded file=\"{}\" clients_changed={} clients_moved={} {}", source_.path, changed, moved,
              ByFields(by));
  Event event;
  event.kind = EventKind::kReloaded;
  event.time_ns = MonotonicNs();
  event.text = By(by);
  events_.Add(std::move(event));
  if (on_reload_) on_reload_();
  loop_.DecideNow();
  NoteChange(Urgency::kNow);
  return notes;
}

void Core::Drain(const Actor& by) {
  if (draining_) return;
  draining_ = true;
  SPDLOG_INFO("draining: all gates open, no new clients {}", ByFields(by));
  scheduler_.OpenAll();
  NoteChange(Urgency::kNow);
}

void Core::Stop() {
  scheduler_.OpenAll();
  loop_.Stop();
}

void Core::Refused(std::uint32_t uid, const std::string& why) {
  ++refused_total_;
  Event event;
  event.kind = EventKind::kRefused;
  event.time_ns = MonotonicNs();
  // A flood of refusals must not wash everything else out of the log and the event memory.
  const auto left_out = refusal_lines_.Take(OwnerOf(uid), event.time_ns);
  if (!left_out) return;
  event.text = why;
  if (*left_out != 0) event.text += " (" + std::to_string(*left_out) + " more of this user were not logged)";
  SPDLOG_WARN("refused reason=\"{}\"", event.text);
  events_.Add(std::move(event));
}

}  // namespace xschedd
