#include "daemon/scheduler/recorder.h"

#include <spdlog/spdlog.h>

#include <cmath>
#include <string>
#include <utility>

#include "daemon/policy/benefit.h"
#include "daemon/scheduler/benefit_words.h"
#include "daemon/scheduler/filling_words.h"

namespace xschedd {
namespace {

// A little less than the half second that History::Sample wants, so that none is just missed.
constexpr std::uint64_t kSampleIntervalNs = 450 * policy::kNsPerMs;

}  // namespace

void Recorder::NotePhase(Attachment& attachment, std::uint64_t now_ns) {
  const Phase phase = attachment.PhaseNow();
  const Phase before = attachment.history.Current();
  if (!attachment.history.Change(histories_, phase, attachment.reason, attachment.MomentAt(now_ns))) return;
  if ((before == Phase::kUntracked) != (phase == Phase::kUntracked)) {
    meter_.SetTracked(attachment, phase != Phase::kUntracked, now_ns);
  }
  const bool waited = before == Phase::kHeld;
  if (waited && (phase == Phase::kRunning || phase == Phase::kUntracked)) {
    events_.Add(DeviceEvent(EventKind::kOpened, attachment, now_ns));
  }
  if (phase == Phase::kUntracked) events_.Add(DeviceEvent(EventKind::kUntracked, attachment, now_ns));
  if (before == Phase::kUntracked) events_.Add(DeviceEvent(EventKind::kTracked, attachment, now_ns));
  if (phase == Phase::kHeld) events_.Add(DeviceEvent(EventKind::kHeld, attachment, now_ns));
}

void Recorder::NoteBusy(Attachment& attachment, std::uint64_t now_ns) {
  ++(attachment.busy ? attachment.metered.became_busy : attachment.metered.became_idle);
  events_.Add(DeviceEvent(attachment.busy ? EventKind::kBusy : EventKind::kIdle, attachment, now_ns));
  NotePhase(attachment, now_ns);
}

void Recorder::NoteSilent(const Attachment& attachment, std::uint64_t now_ns) {
  const std::uint64_t silent_ms = (now_ns - attachment.client->silent_since_ns) / policy::kNsPerMs;
  Event event = DeviceEvent(EventKind::kSilent, attachment, now_ns);
  event.text = "not heard from for " + std::to_string(silent_ms) +
               " ms: stopped, frozen or dumping core; it counts as idle until it is heard from again";
  events_.Add(std::move(event));
  SPDLOG_INFO("client silent pid={} device={} for_ms={}", attachment.client->identity.pid,
              attachment.device->pci_address, silent_ms);
}

bool Recorder::NoteLate(Attachment& attachment, std::uint64_t late_ns, std::uint64_t now_ns) {
  Client& client = *attachment.client;
  ++client.late_total;
  ++attachment.metered.late;
  attachment.history.AddLate(histories_, attachment.MomentAt(now_ns));
  if (!client.late_lines.Take(now_ns)) {
    ++late_lines_left_out_;
    return false;
  }
  Event event = DeviceEvent(EventKind::kLate, attachment, now_ns);
  const std::uint64_t tenths = late_ns / (policy::kNsPerMs / 10);
  event.text = "finished " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms after its deadline";
  SPDLOG_DEBUG("late pid={} device={} late_us={} late_total={}", client.identity.pid, attachment.device->pci_address,
               late_ns / policy::kNsPerUs, client.late_total);
  events_.Add(std::move(event));
  return true;
}

void Recorder::BeginHold(Attachment& attachment, const Client* blocker, std::uint64_t now_ns) {
  if (!attachment.busy || attachment.held_since_ns != 0) return;
  if (attachment.metered.blocker != (blocker != nullptr ? blocker->id : 0)) {
    meter_.HeldForAnother(attachment, blocker, now_ns);
  }
  attachment.held_since_ns = now_ns;
}

void Recorder::EndHold(Attachment& attachment, std::uint64_t now_ns) {
  if (attachment.held_since_ns == 0) return;
  const std::uint64_t held_ns = now_ns - attachment.held_since_ns;
  attachment.held_ns += held_ns;
  if (enforces_) attachment.burst.AddHeld(held_ns);
  meter_.HoldEnded(attachment, held_ns);
  attachment.held_since_ns = 0;
  // Else the text would be made for each hold, and a decision can end hundreds.
  if (!spdlog::should_log(spdlog::level::debug)) return;
  SPDLOG_DEBUG("held pid={} device={} for_us={} reason=\"{}\"", attachment.client->identity.pid,
               attachment.device->pci_address, held_ns / policy::kNsPerUs, attachment.reason.Text());
}

void Recorder::NoteDecision(Device& device, std::uint64_t written_ns) {
  meter_.Decided(device);
  if (device.seen_ns == 0) return;
  latency_.Add(written_ns - device.seen_ns);
  meter_.DecidedAfter(device, written_ns - device.seen_ns);
}

void Recorder::NoteBenefit(const Group& group, const policy::BenefitSlot& benefit, std::uint32_t tolerance_percent,
                           std::uint64_t now_ns) {
  if (!benefit.IsUsed()) return;
  const policy::BenefitMemory& before = *group.memory.benefit;
  const policy::BenefitMemory& after = *benefit;
  if (before.comparisons == after.comparisons && before.settled == after.settled) return;
  const policy::BenefitMemory::Comparison& compared = after.Of(after.trial);
  if (before.settled != after.settled || policy::IsSettled(before) != policy::IsSettled(after)) {
    events_.Add(ClientEvent(EventKind::kLever, *group.clients.front(), now_ns, BenefitText(after, tolerance_percent)));
  }
  const auto level = before.settled != after.settled ? spdlog::level::info : spdlog::level::debug;
  SPDLOG_LOGGER_CALL(
      spdlog::default_logger_raw(), level,
      "lever pid={} group={} mode={} compared={} slower_percent={:.1f} tail_percent={:.1f} "
      "whole_percent={:.1f} cost_percent={:.1f} tolerance_percent={} pairs={} held_for_it_percent={:.0f}",
      group.clients.front()->identity.pid, group.name, policy::ModeText(after.settled), policy::ModeText(after.trial),
      policy::SlowerPercent(compared.typical), policy::SlowerPercent(compared.tail),
      policy::SlowerPercent(compared.whole), policy::CostPercent(after, after.trial).value_or(0), tolerance_percent,
      compared.pairs, 100 * after.cost);
}

void Recorder::NoteFilling(const Device& device, const policy::FillingMemory& filling) {
  const policy::FillingMemory& before = device.memory.filling;
  if (before.pairs != 0 && filling.pairs == 0) {
    SPDLOG_DEBUG("turns device={} at_a_time={} compared={} group={} pairs={} gain_percent={:.0f}", device.pci_address,
                 before.settled, before.trial.number, before.trial.group, before.pairs,
                 100 * std::expm1(filling.trial_gain));
  }
  if (before.settled == filling.settled) return;
  SPDLOG_INFO("turns device={} \"{}\"", device.pci_address, FillingText(filling));
}

void Recorder::NoteJoins(const Group& group, const policy::GroupMemory& memory, std::uint64_t now_ns) {
  if (group.memory.joins == memory.joins) return;
  const Client& client = *group.clients.front();
  const std::string text = memory.joins
                               ? JoinsText(memory)
                               : "it has its own turns again, since its joining others' no longer made them faster";
  events_.Add(ClientEvent(EventKind::kLever, client, now_ns, text));
  SPDLOG_INFO("turns pid={} group={} \"{}\"", client.identity.pid, group.name, text);
}

bool Recorder::IsSampleDue(std::uint64_t now_ns) {
  if (now_ns - sampled_ns_ < kSampleIntervalNs) return false;
  sampled_ns_ = now_ns;
  return true;
}

void Recorder::Sample(Client& client, std::uint64_t now_ns) {
  for (const auto& [slot, attachment] : client.attachments) {
    if (attachment->gate.tracked) attachment->history.Sample(histories_, attachment->MomentAt(now_ns));
  }
}

void Recorder::ClientGone(Client& client, std::uint64_t now_ns) {
  past_.Keep(client, histories_, now_ns);
  meter_.Close(client, now_ns);
}

}  // namespace xschedd
