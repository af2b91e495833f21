#include "daemon/scheduler/gate_writer.h"

namespace xschedd {
namespace {

bool Binds(const policy::Gate& gate) {
  return gate.held || gate.tracked;
}

}  // namespace

void GateWriter::Write(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns) {
  Client& client = *attachment.client;
  CountBinding(client, Binds(attachment.gate), Binds(gate), now_ns);
  attachment.gate = gate;
  BoardWriter& board = client.channel->Board();
  if (!board.Set(attachment.slot, SettingOf(gate))) return;
  if (!gate.held && client.channel->Ledger().HasWaiters(attachment.slot)) board.WakeGate(attachment.slot);
  ++counts_.gate_writes;
}

void GateWriter::Align(Client& client) {
  BoardWriter& board = client.channel->Board();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const auto found = client.attachments.find(slot);
    const policy::Gate gate = found != client.attachments.end() ? found->second->gate : policy::Gate{};
    if (!board.Set(slot, SettingOf(gate))) continue;
    if ((!gate.held || !enforces_) && client.channel->Ledger().HasWaiters(slot)) board.WakeGate(slot);
    ++counts_.gate_writes;
  }
}

bool GateWriter::RenewLease(Client& client, std::uint64_t now_ns) const {
  if (client.flagged_gates == 0) return false;
  client.channel->Board().RenewLease(now_ns + lease_ns_);
  return true;
}

GateSetting GateWriter::SettingOf(const policy::Gate& gate) const {
  if (!enforces_) {
    return {.tracked = gate.tracked,
            .awaited = gate.awaited,
            .tells_waits = gate.tells_waits,
            .count_may_wait = gate.count_may_wait};
  }
  const bool beside = gate.why == policy::Why::kGuard || gate.why == policy::Why::kBeside;
  return {gate.held,     gate.tracked, gate.window_us,   gate.window_floor, beside,
          gate.slice_us, gate.awaited, gate.tells_waits, gate.may_spin,     gate.count_may_wait};
}

void GateWriter::CountBinding(Client& client, bool bound, bool binds, std::uint64_t now_ns) const {
  if (binds == bound) return;
  if (binds) {
    // The lease first: the gate must bind as soon as the client sees it.
    if (client.flagged_gates++ == 0) client.channel->Board().RenewLease(now_ns + lease_ns_);
  } else {
    --client.flagged_gates;
  }
}

}  // namespace xschedd
