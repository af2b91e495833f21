// Client's second half: what the program says and asks of itself (client-shim/include/xschedd.h): hints, holds, status.
#include "client-shim/core/client.h"
#include "common/clock.h"
#include "common/priority.h"

namespace xschedd::shim {

// ---- hints ---------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> Client::DeadlineHint() const {
  const std::uint64_t us = deadlines_.OfProcess();
  return us == 0 ? std::nullopt : std::optional<std::uint64_t>(us);
}

int Client::SetPriority(int priority) {
  const bool is_none = priority == XSCHEDD_PRIORITY_NONE;
  if (!is_none && !IsPriority(priority)) return XSCHEDD_ERROR_INVALID;
  return TellPriority(priority_.Set(is_none ? std::nullopt : std::optional(priority)));
}

int Client::SetWeight(unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return TellWeight(weight_.Set(is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

int Client::SetStreamPriority(void* stream, int priority) {
  const bool is_none = priority == XSCHEDD_PRIORITY_NONE;
  if (!is_none && !IsPriority(priority)) return XSCHEDD_ERROR_INVALID;
  const bool changed = priority_.SetStream(ByOneName(stream), is_none ? std::nullopt : std::optional(priority));
  OrderStreams();
  return TellPriority(changed);
}

int Client::SetStreamWeight(void* stream, unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return TellWeight(weight_.SetStream(stream, is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

// The protocol has no word for "none any more": the default says the same.
int Client::TellPriority(bool changed) {
  HintMessage hint;
  hint.priority = priority_.Highest().value_or(kPriorityDefault);
  return Tell(hint, changed);
}

int Client::TellWeight(bool changed) {
  HintMessage hint;
  hint.weight = weight_.Highest().value_or(kDefaultWeight);
  return Tell(hint, changed);
}

int Client::SetDeadline(std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  deadlines_.Set(us);
  TellDeadlines();
  HintMessage hint;
  hint.deadline_us = us;
  return Tell(hint);
}

int Client::SetStreamDeadline(void* stream, std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  stream = ByOneName(stream);
  deadlines_.SetStream(stream, us);
  TellDeadlines();
  HintMessage hint;
  hint.deadline_us = us;
  hint.queue = QueueId(KeyOf(stream));
  return Tell(hint);
}

void Client::TellDeadlines() {
  for (const auto& entry : trackers_) {
    if (DeviceTracker* tracker = entry.load(std::memory_order_acquire)) tracker->DeadlinesChanged();
  }
}

int Client::Tell(const HintMessage& hint, bool changed) {
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  if (session_.load(std::memory_order_acquire) == nullptr) return XSCHEDD_ERROR_NOT_CONNECTED;
  if (changed) agent_.Post(hint);
  return XSCHEDD_OK;
}

// ---- the program's own holds ---------------------------------------------------------------------------------------

int Client::Hold(int device, std::uint64_t max_us) {
  if (!OwnHolds::IsDevice(device) || !OwnHolds::IsLength(max_us)) return XSCHEDD_ERROR_INVALID;
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  own_holds_.HoldDevice(device, MonotonicNs() + max_us * 1000);
  PointSummary();
  return XSCHEDD_OK;
}

int Client::Release(int device) {
  if (!OwnHolds::IsDevice(device)) return XSCHEDD_ERROR_INVALID;
  own_holds_.ReleaseDevice(device);
  PointSummary();
  return XSCHEDD_OK;
}

int Client::HoldStream(void* stream, std::uint64_t max_us) {
  if (!OwnHolds::IsLength(max_us)) return XSCHEDD_ERROR_INVALID;
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  stream = ByOneName(stream);
  own_holds_.HoldStream(stream, MonotonicNs() + max_us * 1000);
  PointSummary();
  return XSCHEDD_OK;
}

int Client::ReleaseStream(void* stream) {
  stream = ByOneName(stream);
  own_holds_.ReleaseStream(stream);
  PointSummary();
  return XSCHEDD_OK;
}

// ---- what the program asks -----------------------------------------------------------------------------------------

int Client::GetStatus(xschedd_status* status) {
  const SessionUse use(session_);
  Session* const session = use.Get();
  status->state = HasGivenUp()         ? XSCHEDD_STATE_INERT
                  : session != nullptr ? XSCHEDD_STATE_SCHEDULED
                                       : XSCHEDD_STATE_UNSCHEDULED;
  status->priority_hint = priority_.OfProcess().value_or(XSCHEDD_PRIORITY_NONE);
  status->weight_hint = weight_.OfProcess().value_or(XSCHEDD_WEIGHT_NONE);
  status->deadline_us = deadlines_.OfProcess();
  status->own_held_ns = own_holds_.WaitedNs();
  status->schedules_streams = schedules_streams_.load(std::memory_order_relaxed);
  status->streams_held_ns = stream_gate_.WaitedNs();
  status->devices = AttachedDevices();
  if (session == nullptr) return XSCHEDD_OK;
  status->client_id = client_id_.load(std::memory_order_relaxed);
  status->effective_priority = effective_priority_.load(std::memory_order_relaxed);
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const abi::LedgerDevice& device = session->Ledger().Device(slot);
    // relaxed: statistics.
    // acquire: what was submitted is read later, and so is no less.
    status->completed += device.completed.load(std::memory_order_acquire);
    status->submitted += device.submitted.load(std::memory_order_relaxed);
    status->held_ns += device.held_ns.load(std::memory_order_relaxed);
    status->passthrough += device.passthrough.load(std::memory_order_relaxed);
    status->gpu_time_ns += device.gpu_time_ns.load(std::memory_order_relaxed);
  }
  return XSCHEDD_OK;
}

int Client::GetDeviceStatus(int device, xschedd_device_status* status) {
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  const SessionUse use(session_);
  Session* const session = use.Get();
  if (session == nullptr) return XSCHEDD_ERROR_NOT_CONNECTED;
  const auto slot = static_cast<std::uint32_t>(device);
  const std::uint32_t word = session->Board().Word(slot);
  const bool binds = MonotonicNs() < session->LeaseUntilNs();
  status->held = binds && (word & abi::kHeld) != 0;
  status->tracked = binds && (word & abi::kFlagMask) != 0;
  status->window_us = session->Board().WindowUs(slot);
  const abi::LedgerDevice& ledger = session->Ledger().Device(slot);
  // relaxed: statistics.
  status->in_flight = ledger.in_flight.load(std::memory_order_relaxed);
  status->window_limit = ledger.window_limit.load(std::memory_order_relaxed);
  // acquire: what was submitted is read later, and so is no less.
  status->completed = ledger.completed.load(std::memory_order_acquire);
  status->submitted = ledger.submitted.load(std::memory_order_relaxed);
  status->gpu_time_ns = ledger.gpu_time_ns.load(std::memory_order_relaxed);
  status->held_ns = ledger.held_ns.load(std::memory_order_relaxed);
  status->passthrough = ledger.passthrough.load(std::memory_order_relaxed);
  return XSCHEDD_OK;
}

}  // namespace xschedd::shim
