#include "daemon/scheduler/scheduler.h"

#include <algorithm>

namespace xschedd {
namespace {

bool Binds(const policy::Gate& gate) {
  return gate.held || gate.tracked;
}

}  // namespace

Scheduler::Scheduler(Registry& registry, EventLog& events, Clock clock)
    : registry_(registry), clock_(clock), recorder_(events) {}

void Scheduler::MarkDirty(Device& device) {
  if (device.dirty) return;
  device.dirty = true;
  dirty_.push_back(&device);
}

void Scheduler::SetNextLook(Device& device, std::uint64_t next_look_ns) {
  if (device.next_look_ns == next_look_ns) return;
  if (device.next_look_ns != policy::kNever) looks_.erase({device.next_look_ns, &device});
  device.next_look_ns = next_look_ns;
  if (next_look_ns != policy::kNever) looks_.emplace(next_look_ns, &device);
}

void Scheduler::SetSettings(const policy::Settings& settings) {
  settings_ = decides_by_ = settings;
  if (!enforces_) decides_by_.tolerance_percent = 0;
  for (const auto& [address, device] : registry_.Devices())
    MarkDirty(*device);
}

void Scheduler::SetEnforcing(bool enforces) {
  if (enforces_ == enforces) return;
  const std::uint64_t now = clock_();
  // A hold ends where its kind does: what was held and what would have been are not one figure.
  for (const auto& [id, client] : registry_.Clients()) {
    for (const auto& [slot, attachment] : client->attachments)
      recorder_.EndHold(*attachment, now);
  }
  enforces_ = enforces;
  recorder_.SetEnforcing(enforces);
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->channel == nullptr) continue;
    AlignBoard(*client);
    for (const auto& [slot, attachment] : client->attachments) {
      attachment->reason.is_observed = attachment->gate.held && !enforces;
      recorder_.NotePhase(*attachment, now);
      if (attachment->gate.held && attachment->busy) attachment->held_since_ns = now;
    }
  }
  SetSettings(settings_);
}

void Scheduler::Changed(Client& client) {
  for (Client* member : client.group->clients) {
    for (const auto& [slot, attachment] : member->attachments) {
      gatherer_.Forget(*attachment->device);
      MarkDirty(*attachment->device);
    }
  }
}

void Scheduler::Leaving(Client& client) {
  const std::uint64_t now = clock_();
  for (const auto& [slot, attachment] : client.attachments) {
    if (client.channel != nullptr) {
      recorder_.EndHold(*attachment, now);
      WriteGate(*attachment, policy::Gate{}, now);
    }
    MarkDirty(*attachment->device);
  }
  recorder_.ClientGone(client, now);
  // A device goes with its last client, and must not be remembered then.
  for (const auto& [slot, attachment] : client.attachments) {
    gatherer_.Forget(*attachment->device);
    const auto& all = attachment->device->attachments;
    const bool alone = std::all_of(all.begin(), all.end(), [&](const Attachment* a) { return a->client == &client; });
    if (!alone) continue;
    std::erase(dirty_, attachment->device);
    SetNextLook(*attachment->device, policy::kNever);
    recorder_.DeviceGone(*attachment->device);
  }
}

void Scheduler::OpenAll() {
  all_open_ = true;
  const std::uint64_t now = clock_();
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->channel == nullptr) continue;
    for (const auto& [slot, attachment] : client->attachments)
      Apply(*attachment, policy::Gate{}, now);
  }
}

void Scheduler::DecideAgain() {
  all_open_ = false;
  // What was gathered still has the gates from before they were opened.
  for (const auto& [address, device] : registry_.Devices()) {
    gatherer_.Forget(*device);
    MarkDirty(*device);
  }
}

void Scheduler::AlignBoard(Client& client) {
  BoardWriter& board = client.channel->Board();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const auto found = client.attachments.find(slot);
    const policy::Gate gate = found != client.attachments.end() ? found->second->gate : policy::Gate{};
    if (!board.Set(slot, SettingOf(gate))) continue;
    if ((!gate.held || !enforces_) && client.channel->Ledger().HasWaiters(slot)) board.WakeGate(slot);
    ++counts_.gate_writes;
  }
}

bool Scheduler::Serve(Client& client) {
  LedgerReader& ledger = client.channel->Ledger();
  const std::uint64_t now = clock_();
  ledger.Awake();
  bool asleep = false;
  // A client that keeps publishing gets a second look, then waits until others had theirs.
  for (int look = 0; look < 2 && !asleep; ++look) {
    const LedgerReader::Drained drained = ledger.Drain();
    counts_.refused_records += drained.refused;
    LookAtRenewals(client, !drained.touched_slots.empty(), now);
    const auto update = [&](std::uint32_t slot) {
      const auto found = client.attachments.find(slot);
      // The level of an untracked slot is not kept by the client: it says nothing.
      if (found != client.attachments.end() && found->second->gate.tracked) {
        ReadLevels(*found->second, true, now);
      }
    };
    if (drained.resync) {
      for (const auto& [slot, attachment] : client.attachments)
        update(slot);
    } else {
      for (const std::uint32_t slot : drained.touched_slots)
        update(slot);
    }
    asleep = ledger.PrepareToSleep();
  }
  return asleep;
}

void Scheduler::ReadLevels(Attachment& attachment, bool whole, std::uint64_t now_ns) {
  const LedgerReader& ledger = attachment.client->channel->Ledger();
  const abi::Level level =
      attachment.client->silent_since_ns == 0 ? ledger.LevelOf(attachment.slot) : abi::Level::kIdle;
  const bool busy = level != abi::Level::kIdle;
  SetBusy(attachment, busy, whole, now_ns);
  SetWaits(attachment, level == abi::Level::kWaits, now_ns);
  SetDeadline(attachment, busy ? ledger.DeadlineNs(attachment.slot) : 0, now_ns);
}

void Scheduler::SetBusy(Attachment& attachment, bool busy, bool whole, std::uint64_t now_ns) {
  if (attachment.busy == busy) return;
  attachment.busy = busy;
  if (busy) {
    attachment.busy_since_ns = now_ns;
    attachment.burst.Begin(whole, now_ns);
    attachment.gpu.Busy(now_ns);
  } else {
    attachment.gpu.Read(attachment.client->channel->Ledger().GpuTimeNs(attachment.slot), now_ns);
    attachment.idle_since_ns = now_ns;
    recorder_.EndHold(attachment, now_ns);
    attachment.burst.End(now_ns);
  }
  recorder_.NoteBusy(attachment, now_ns);
  NoteTransition(attachment, now_ns);
}

void Scheduler::SetWaits(Attachment& attachment, bool waits, std::uint64_t now_ns) {
  if (attachment.waits == waits) return;
  attachment.waits = waits;
  NoteTransition(attachment, now_ns);
}

void Scheduler::NoteTransition(Attachment& attachment, std::uint64_t now_ns) {
  ++counts_.transitions;
  ++counts_.changes;
  Device& device = *attachment.device;
  if (device.seen_ns == 0) device.seen_ns = now_ns;
  Gatherer::Touch(attachment);
  MarkDirty(device);
}

void Scheduler::LookAtRenewals(Client& client, bool spoke, std::uint64_t now_ns) {
  if (client.channel->Layout().version < abi::kRenewalsSince) return;
  const std::uint64_t renewals = client.channel->Ledger().Renewals();
  const bool is_heard = spoke || renewals != client.renewals;
  client.renewals = renewals;
  if (client.silent_since_ns != 0) {
    if (!is_heard) return;
    client.renewed_ns = now_ns;
    client.silent_since_ns = 0;
    for (const auto& [slot, attachment] : client.attachments) {
      attachment->silent = false;
      if (attachment->gate.tracked) ReadLevels(*attachment, true, now_ns);
      recorder_.NotePhase(*attachment, now_ns);
    }
    return;
  }
  const auto& all = client.attachments;
  const bool is_busy = std::any_of(all.begin(), all.end(), [](const auto& entry) { return entry.second->busy; });
  if (is_heard || !is_busy) client.renewed_ns = now_ns;
  if (now_ns - client.renewed_ns > BusyLeaseNs()) FallSilent(client, now_ns);
}

void Scheduler::FallSilent(Client& client, std::uint64_t now_ns) {
  client.silent_since_ns = client.renewed_ns;
  for (const auto& [slot, attachment] : client.attachments) {
    if (!attachment->busy) continue;
    attachment->silent = true;
    recorder_.NoteSilent(*attachment, now_ns);
    SetBusy(*attachment, false, true, now_ns);
    SetWaits(*attachment, false, now_ns);
    SetDeadline(*attachment, 0, now_ns);
  }
}

void Scheduler::SetDeadline(Attachment& attachment, std::uint64_t deadline_ns, std::uint64_t now_ns) {
  // No honest client plans further ahead than a hint may say; a policy must not have to think of an overflow.
  const std::uint64_t limited = std::min(deadline_ns, now_ns + policy::kDeadlineLimits.max * policy::kNsPerUs);
  const std::uint64_t before = attachment.deadline_ns;
  if (limited == before) return;
  // What was most urgent is done when something later, or nothing, is most urgent now.
  const bool done = before != 0 && (limited == 0 || limited > before);
  // Rare enough to be saved each time.
  if (done && before < now_ns && recorder_.NoteLate(attachment, now_ns - before, now_ns) && on_late_)
    on_late_(*attachment.client);
  attachment.deadline_ns = limited;
  ++counts_.changes;
  Gatherer::Touch(attachment);
  MarkDirty(*attachment.device);
}

void Scheduler::BeginTracking(Attachment& attachment, std::uint64_t now_ns) {
  const LedgerReader& ledger = attachment.client->channel->Ledger();
  attachment.gpu.Start(ledger.GpuTimeNs(attachment.slot), now_ns);
  Client& client = *attachment.client;
  // It had nothing to renew while nobody asked.
  if (client.silent_since_ns == 0) client.renewed_ns = now_ns;
  ReadLevels(attachment, false, now_ns);
}

void Scheduler::EndTracking(Attachment& attachment) {
  // Not known any more; nobody's gate hangs on it.
  attachment.busy = attachment.waits = false;
  attachment.silent = false;
  attachment.deadline_ns = 0;
  attachment.gpu.Stop();
  attachment.burst.Abandon();
  Gatherer::Touch(attachment);
}

void Scheduler::Decide() {
  const std::uint64_t now = clock_();
  for (const auto& [next_look_ns, device] : looks_) {
    if (next_look_ns > now) break;
    MarkDirty(*device);
  }
  // Deciding may touch devices again (a gate that becomes tracked shows that its client is busy); the list is walked
  // until its end, which comes after one more round: tracking begins once.
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    if (dirty_[i]->dirty) DecideFrom(*dirty_[i], now);
  }
  dirty_.clear();
}

void Scheduler::DecideFrom(Device& start, std::uint64_t now_ns) {
  Cluster& cluster = gatherer_.Gather(start, decides_by_, now_ns);
  for (Device* device : cluster.devices)
    device->dirty = false;
  if (all_open_) return;
  const policy::Decision& decision = decider_.Decide(cluster.state, now_ns);
  ++counts_.decisions;
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    if (cluster.state.groups[i].memory == decision.memory[i]) continue;
    recorder_.NoteBenefit(*cluster.groups[i], decision.memory[i].benefit, decides_by_.tolerance_percent, now_ns);
    cluster.state.groups[i].memory = decision.memory[i];
    cluster.groups[i]->memory = decision.memory[i];
  }
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    cluster.state.devices[i].memory = cluster.devices[i]->memory = decision.devices[i];
    SetNextLook(*cluster.devices[i], decision.next_look_ns);
  }
  const std::uint64_t writes = counts_.gate_writes;
  WriteGates(cluster, decision, now_ns);
  const std::uint64_t written = clock_();
  if (counts_.gate_writes != writes) last_write_ns_ = written;
  for (Device* device : cluster.devices) {
    recorder_.NoteDecision(*device, written);
    device->seen_ns = 0;
  }
}

void Scheduler::WriteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns) {
  // A gate that stays as it is concerns those that have just become busy at it.
  changed_.clear();
  for (std::uint32_t i = 0; i < cluster.gates.size(); ++i) {
    if (cluster.gates[i] != decision.gates[i]) changed_.push_back(i);
  }
  for (const std::uint32_t i : cluster.fresh) {
    if (cluster.gates[i] == decision.gates[i]) changed_.push_back(i);
  }
  // Shut before opening: two groups that exclude each other must not both be open, however shortly.
  for (const bool held : {true, false}) {
    for (const std::uint32_t i : changed_) {
      if (decision.gates[i].held != held) continue;
      cluster.gates[i] = decision.gates[i];
      Apply(*cluster.attachments[i], decision.gates[i], now_ns);
    }
  }
}

void Scheduler::Apply(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns) {
  const policy::Gate before = attachment.gate;
  const bool held_differently = before.why != gate.why || before.held_for != gate.held_for;
  if (attachment.held_since_ns != 0 && (!gate.held || held_differently)) recorder_.EndHold(attachment, now_ns);
  if (held_differently) attachment.reason = ReasonOf(gate);
  if (before != gate) WriteGate(attachment, gate, now_ns);

  if (!gate.tracked && before.tracked) EndTracking(attachment);
  recorder_.NotePhase(attachment, now_ns);
  if (gate.tracked && !before.tracked) BeginTracking(attachment, now_ns);

  if (gate.held && attachment.busy && attachment.held_since_ns == 0) attachment.held_since_ns = now_ns;
}

void Scheduler::WriteGate(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns) {
  Client& client = *attachment.client;
  UpdateLease(client, Binds(attachment.gate), Binds(gate), now_ns);
  attachment.gate = gate;
  BoardWriter& board = client.channel->Board();
  if (!board.Set(attachment.slot, SettingOf(gate))) return;
  if (!gate.held && client.channel->Ledger().HasWaiters(attachment.slot)) board.WakeGate(attachment.slot);
  ++counts_.gate_writes;
}

GateSetting Scheduler::SettingOf(const policy::Gate& gate) const {
  if (!enforces_) return {.tracked = gate.tracked, .awaited = gate.awaited, .tells_waits = gate.tells_waits};
  const bool beside = gate.why == policy::Why::kGuard || gate.why == policy::Why::kBeside;
  return {gate.held, gate.tracked,  gate.window_us, gate.window_floor,
          beside,    gate.slice_us, gate.awaited,   gate.tells_waits};
}

void Scheduler::UpdateLease(Client& client, bool binds_before, bool binds, std::uint64_t now_ns) {
  if (binds == binds_before) return;
  if (binds) {
    // Before the word: it must bind from the moment that it is seen.
    if (client.flagged_gates++ == 0) client.channel->Board().RenewLease(now_ns + lease_ns_);
  } else {
    --client.flagged_gates;
  }
}

bool Scheduler::RenewLeases() {
  const std::uint64_t now = clock_();
  const bool samples = recorder_.IsSampleDue(now);
  bool any = false;
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->flagged_gates == 0) continue;
    client->channel->Board().RenewLease(now + lease_ns_);
    LookAtRenewals(*client, false, now);
    // Only who is tracked measures, and whoever is tracked has a lease.
    if (samples) recorder_.Sample(*client, now);
    any = true;
  }
  return any;
}

Reason Scheduler::ReasonOf(const policy::Gate& gate) {
  Reason reason{.why = gate.why, .is_observed = gate.held && !enforces_};
  if (const Client* client = gate.held_for != 0 ? registry_.Find(gate.held_for) : nullptr) {
    reason.pid = client->identity.pid;
    reason.priority = client->effective.priority;
  }
  return reason;
}

double Scheduler::PartOf(const Client& client) {
  std::size_t own = 0;
  std::size_t all = 0;
  for (const auto& [slot, attachment] : client.attachments) {
    const Cluster* const cluster = attachment->device->cluster;
    if (cluster == nullptr) continue;
    const auto found = cluster->by_owner.find(client.identity.owner);
    if (found != cluster->by_owner.end()) own += found->second;
    all += cluster->attachments.size();
  }
  return all == 0 ? 1 : static_cast<double>(own) / static_cast<double>(all);
}

std::uint64_t Scheduler::NextLookNs() const {
  return all_open_ || looks_.empty() ? policy::kNever : looks_.begin()->first;
}

}  // namespace xschedd
