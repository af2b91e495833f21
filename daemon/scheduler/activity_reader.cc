#include "daemon/scheduler/activity_reader.h"

#include <algorithm>

#include "daemon/scheduler/gather.h"

namespace xschedd {

bool ActivityReader::Read(Client& client, std::uint64_t now_ns) {
  LedgerReader& ledger = client.channel->Ledger();
  ledger.Awake();
  bool asleep = false;
  // A client that keeps publishing is read twice, then waits until others have been read.
  for (int pass = 0; pass < 2 && !asleep; ++pass) {
    const LedgerReader::Reports reports = ledger.TakeReports();
    counts_.refused_records += reports.jumped ? 1 : 0;
    CheckRenewals(client, reports.any, now_ns);
    if (reports.any) {
      for (const auto& [slot, attachment] : client.attachments) {
        // The client does not keep the level of an untracked slot up to date.
        if (attachment->gate.tracked) ReadLevels(*attachment, true, now_ns);
      }
    }
    asleep = ledger.PrepareToSleep();
  }
  return asleep;
}

void ActivityReader::ReadLevels(Attachment& attachment, bool is_whole, std::uint64_t now_ns) {
  const LedgerReader& ledger = attachment.client->channel->Ledger();
  const abi::Level level =
      attachment.client->silent_since_ns == 0 ? ledger.LevelOf(attachment.slot) : abi::Level::kIdle;
  const bool busy = level != abi::Level::kIdle;
  SetBusy(attachment, busy, is_whole, now_ns);
  SetWaits(attachment, level == abi::Level::kWaits, now_ns);
  SetDeadline(attachment, busy ? ledger.DeadlineNs(attachment.slot) : 0, now_ns);
}

void ActivityReader::SetBusy(Attachment& attachment, bool busy, bool is_whole, std::uint64_t now_ns) {
  if (attachment.busy == busy) return;
  attachment.busy = busy;
  if (busy) {
    attachment.busy_since_ns = now_ns;
    attachment.burst.Begin(is_whole, now_ns);
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

void ActivityReader::SetWaits(Attachment& attachment, bool waits, std::uint64_t now_ns) {
  if (attachment.waits == waits) return;
  attachment.waits = waits;
  NoteTransition(attachment, now_ns);
}

void ActivityReader::NoteTransition(Attachment& attachment, std::uint64_t now_ns) {
  ++counts_.transitions;
  ++counts_.changes;
  Device& device = *attachment.device;
  Gatherer::Touch(attachment);
  if (Gatherer::MayWait(attachment)) return queue_.AddBy(device, now_ns + Gatherer::kMayWaitNs);
  if (device.seen_ns == 0) device.seen_ns = now_ns;
  queue_.Add(device);
}

void ActivityReader::CheckRenewals(Client& client, bool reported, std::uint64_t now_ns) {
  if (client.channel->Layout().version < abi::kRenewalsSince) return;
  const std::uint64_t renewals = client.channel->Ledger().Renewals();
  const bool is_heard = reported || renewals != client.renewals;
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
  if (now_ns - client.renewed_ns > busy_lease_ns_) FallSilent(client, now_ns);
}

void ActivityReader::FallSilent(Client& client, std::uint64_t now_ns) {
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

void ActivityReader::SetDeadline(Attachment& attachment, std::uint64_t deadline_ns, std::uint64_t now_ns) {
  // No honest deadline is beyond the largest hint. Limited, it cannot overflow in a policy.
  const std::uint64_t limited = std::min(deadline_ns, now_ns + policy::kDeadlineLimits.max * policy::kNsPerUs);
  const std::uint64_t before = attachment.deadline_ns;
  if (limited == before) return;
  // The most urgent work is done once less urgent work, or none, takes its place.
  const bool done = before != 0 && (limited == 0 || limited > before);
  if (done && before < now_ns && recorder_.NoteLate(attachment, now_ns - before, now_ns) && on_late_)
    on_late_(*attachment.client);
  attachment.deadline_ns = limited;
  ++counts_.changes;
  Gatherer::Touch(attachment);
  queue_.Add(*attachment.device);
}

void ActivityReader::BeginTracking(Attachment& attachment, std::uint64_t now_ns) {
  const LedgerReader& ledger = attachment.client->channel->Ledger();
  attachment.gpu.Start(ledger.GpuTimeNs(attachment.slot), now_ns);
  Client& client = *attachment.client;
  // An untracked client has nothing to renew.
  if (client.silent_since_ns == 0) client.renewed_ns = now_ns;
  ReadLevels(attachment, false, now_ns);
}

void ActivityReader::EndTracking(Attachment& attachment) {
  // Unknown from now on, and no gate depends on it.
  attachment.busy = attachment.waits = false;
  attachment.silent = false;
  attachment.deadline_ns = 0;
  attachment.gpu.Stop();
  attachment.burst.Abandon();
  Gatherer::Touch(attachment);
}

}  // namespace xschedd
