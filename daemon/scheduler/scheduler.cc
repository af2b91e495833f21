#include "daemon/scheduler/scheduler.h"

#include <algorithm>

namespace xschedd {

Scheduler::Scheduler(Registry& registry, EventLog& events, Clock clock)
    : registry_(registry), clock_(clock), recorder_(events) {}

void Scheduler::SetSettings(const policy::Settings& settings) {
  settings_ = decides_by_ = settings;
  if (!gates_.Enforces()) decides_by_.tolerance_percent = 0;
  for (const auto& [address, device] : registry_.Devices())
    queue_.Add(*device);
}

void Scheduler::SetEnforcing(bool enforces) {
  if (gates_.Enforces() == enforces) return;
  const std::uint64_t now = clock_();
  // All holds end here, so that real and observed ones are not added up.
  for (const auto& [id, client] : registry_.Clients()) {
    for (const auto& [slot, attachment] : client->attachments)
      recorder_.EndHold(*attachment, now);
  }
  gates_.SetEnforcing(enforces);
  recorder_.SetEnforcing(enforces);
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->channel == nullptr) continue;
    gates_.Align(*client);
    for (const auto& [slot, attachment] : client->attachments) {
      attachment->reason.is_observed = attachment->gate.held && !enforces;
      recorder_.NotePhase(*attachment, now);
      if (attachment->gate.held) recorder_.BeginHold(*attachment, BlockerOf(attachment->gate), now);
    }
  }
  SetSettings(settings_);
}

void Scheduler::Changed(Client& client) {
  for (Client* member : client.group->clients) {
    for (const auto& [slot, attachment] : member->attachments) {
      gatherer_.Forget(*attachment->device);
      queue_.Add(*attachment->device);
    }
  }
}

void Scheduler::Remove(Client& client) {
  const std::uint64_t now = clock_();
  for (const auto& [slot, attachment] : client.attachments) {
    if (client.channel != nullptr) {
      recorder_.EndHold(*attachment, now);
      gates_.Write(*attachment, policy::Gate{}, now);
    }
    queue_.Add(*attachment->device);
  }
  recorder_.ClientGone(client, now);
  // A device is removed with its last client, and nothing may refer to it afterwards.
  for (const auto& [slot, attachment] : client.attachments) {
    gatherer_.Forget(*attachment->device);
    const auto& all = attachment->device->attachments;
    const bool alone = std::all_of(all.begin(), all.end(), [&](const Attachment* a) { return a->client == &client; });
    if (!alone) continue;
    queue_.Remove(*attachment->device);
    recorder_.DeviceGone(*attachment->device);
  }
}

void Scheduler::OpenAll() {
  all_open_ = true;
  const std::uint64_t now = clock_();
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->channel == nullptr) continue;
    for (const auto& [slot, attachment] : client->attachments) {
      const policy::Gate before = attachment->gate;
      gates_.Write(*attachment, policy::Gate{}, now);
      NoteGate(*attachment, before, now);
    }
  }
}

void Scheduler::ResumeDeciding() {
  all_open_ = false;
  // Gathered clusters still have the gates from before OpenAll.
  for (const auto& [address, device] : registry_.Devices()) {
    gatherer_.Forget(*device);
    queue_.Add(*device);
  }
}

void Scheduler::SetLease(std::uint32_t lease_ms) {
  gates_.SetLease(lease_ms * policy::kNsPerMs);
  activity_.SetBusyLease(BusyLeaseNs());
}

void Scheduler::Decide() {
  const std::uint64_t now = clock_();
  queue_.AddFirstDue(now);
  // Deciding may queue devices again (a gate that becomes tracked shows that its client is busy), but only for one more
  // round: tracking begins once.
  while (Device* const device = queue_.Next())
    DecideCluster(*device, now);
}

void Scheduler::DecideCluster(Device& start, std::uint64_t now_ns) {
  Cluster& cluster = gatherer_.Gather(start, decides_by_, now_ns);
  for (Device* device : cluster.devices)
    DecisionQueue::Decided(*device);
  if (all_open_) return;
  const policy::Decision& decision = decider_.Decide(cluster.state, now_ns);
  ++counts_.decisions;
  const std::uint64_t writes = counts_.gate_writes;
  WriteGates(cluster, decision, now_ns);
  const std::uint64_t written = clock_();
  if (counts_.gate_writes != writes) last_write_ns_ = written;
  KeepMemory(cluster, decision, now_ns);
  NoteGates(cluster, decision, now_ns);
  for (Device* device : cluster.devices) {
    recorder_.NoteDecision(*device, written);
    device->seen_ns = 0;
  }
}

void Scheduler::KeepMemory(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns) {
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    if (cluster.state.groups[i].memory == decision.memory[i]) continue;
    recorder_.NoteBenefit(*cluster.groups[i], decision.memory[i].benefit, decides_by_.tolerance_percent, now_ns);
    recorder_.NoteJoins(*cluster.groups[i], decision.memory[i], now_ns);
    cluster.state.groups[i].memory = decision.memory[i];
    cluster.groups[i]->memory = decision.memory[i];
  }
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    Recorder::NoteFilling(*cluster.devices[i], decision.devices[i].filling);
    cluster.state.devices[i].memory = cluster.devices[i]->memory = decision.devices[i];
    queue_.SetDue(*cluster.devices[i], decision.next_decision_ns);
  }
}

// At once: clients wait for them. What is recorded about them comes after.
void Scheduler::WriteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns) {
  to_note_.clear();
  for (std::uint32_t i = 0; i < cluster.gates.size(); ++i) {
    if (cluster.gates[i] == decision.gates[i]) continue;
    to_note_.push_back(i);
    GateWriter::Prefetch(*cluster.attachments[i]);
  }
  // Shut gates before opening others: two groups that exclude each other must not both be open, however briefly.
  for (const bool held : {true, false}) {
    for (const std::uint32_t i : to_note_)
      if (decision.gates[i].held == held) gates_.Write(*cluster.attachments[i], decision.gates[i], now_ns);
  }
  // Unchanged gates whose client has just become busy or idle.
  for (const std::uint32_t i : cluster.fresh) {
    if (cluster.gates[i] == decision.gates[i]) to_note_.push_back(i);
  }
}

void Scheduler::NoteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns) {
  for (const std::uint32_t i : to_note_) {
    NoteGate(*cluster.attachments[i], cluster.gates[i], now_ns);
    cluster.gates[i] = decision.gates[i];
  }
}

// Its gate, which was `before`, has been written, or its client has become busy or idle.
void Scheduler::NoteGate(Attachment& attachment, const policy::Gate& before, std::uint64_t now_ns) {
  const policy::Gate gate = attachment.gate;
  const bool held_differently = before.why != gate.why || before.held_for != gate.held_for;
  if (attachment.held_since_ns != 0 && (!gate.held || held_differently)) recorder_.EndHold(attachment, now_ns);
  if (held_differently) attachment.reason = ReasonOf(gate);

  if (!gate.tracked && before.tracked) ActivityReader::EndTracking(attachment);
  recorder_.NotePhase(attachment, now_ns);
  if (gate.tracked && !before.tracked) activity_.BeginTracking(attachment, now_ns);

  if (gate.held) recorder_.BeginHold(attachment, BlockerOf(gate), now_ns);
}

bool Scheduler::RenewLeases() {
  const std::uint64_t now = clock_();
  const bool samples = recorder_.IsSampleDue(now);
  bool any = false;
  for (const auto& [id, client] : registry_.Clients()) {
    if (!gates_.RenewLease(*client, now)) continue;
    activity_.CheckRenewals(*client, false, now);
    // Only tracked clients measure, and every tracked client has a lease.
    if (samples) recorder_.Sample(*client, now);
    any = true;
  }
  return any;
}

const Client* Scheduler::BlockerOf(const policy::Gate& gate) {
  return gate.held_for != 0 ? registry_.Find(gate.held_for) : nullptr;
}

Reason Scheduler::ReasonOf(const policy::Gate& gate) {
  Reason reason{.why = gate.why, .is_observed = gate.held && !gates_.Enforces()};
  if (const Client* const client = BlockerOf(gate)) {
    reason.pid = client->identity.pid;
    reason.priority = client->effective.priority;
  }
  return reason;
}

double Scheduler::DecisionShareOf(const Client& client) {
  std::size_t own = 0;
  std::size_t all = 0;
  for (const auto& [slot, attachment] : client.attachments) {
    const Cluster* const cluster = attachment->device->cluster;
    if (cluster == nullptr) continue;
    const auto found = cluster->by_payer.find(attachment->payer);
    if (found != cluster->by_payer.end()) own += found->second;
    all += cluster->attachments.size();
  }
  return all == 0 ? 1 : static_cast<double>(own) / static_cast<double>(all);
}

}  // namespace xschedd
