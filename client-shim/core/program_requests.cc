#include "client-shim/core/program_requests.h"

#include "client-shim/core/tracked_streams.h"
#include "client-shim/include/xschedd.h"
#include "common/clock.h"
#include "common/priority.h"

namespace xschedd::shim {

ProgramRequests::ProgramRequests(const Environment& environment, Effects* effects)
    : effects_(effects), priority_(environment.priority), weight_(environment.weight) {
  if (environment.deadline_us) deadlines_.Set(*environment.deadline_us);
}

// ---- hints ---------------------------------------------------------------------------------------------------------

int ProgramRequests::SetPriority(int priority) {
  const bool is_none = priority == XSCHEDD_PRIORITY_NONE;
  if (!is_none && !IsPriority(priority)) return XSCHEDD_ERROR_INVALID;
  return SendPriority(priority_.Set(is_none ? std::nullopt : std::optional(priority)));
}

int ProgramRequests::SetWeight(unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return SendWeight(weight_.Set(is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

int ProgramRequests::SetStreamPriority(void* stream, int priority) {
  const bool is_none = priority == XSCHEDD_PRIORITY_NONE;
  if (!is_none && !IsPriority(priority)) return XSCHEDD_ERROR_INVALID;
  const bool changed = priority_.SetStream(CanonicalStream(stream), is_none ? std::nullopt : std::optional(priority));
  effects_->StreamPrioritiesChanged();
  return SendPriority(changed);
}

int ProgramRequests::SetStreamWeight(void* stream, unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return SendWeight(
      weight_.SetStream(CanonicalStream(stream), is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

// The protocol cannot remove a hint. The default has the same effect.
int ProgramRequests::SendPriority(bool changed) {
  HintMessage hint;
  hint.priority = priority_.Highest().value_or(kPriorityDefault);
  return SendIfChanged(hint, changed);
}

int ProgramRequests::SendWeight(bool changed) {
  HintMessage hint;
  hint.weight = weight_.Highest().value_or(kDefaultWeight);
  return SendIfChanged(hint, changed);
}

// ---- deadlines -----------------------------------------------------------------------------------------------------

int ProgramRequests::SetDeadline(std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  deadlines_.Set(us);
  effects_->DeadlinesChanged();
  HintMessage hint;
  hint.deadline_us = us;
  return effects_->SendHint(hint);
}

int ProgramRequests::SetStreamDeadline(void* stream, std::uint64_t queue, std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  deadlines_.SetStream(CanonicalStream(stream), us);
  effects_->DeadlinesChanged();
  HintMessage hint;
  hint.deadline_us = us;
  hint.queue = queue;
  return effects_->SendHint(hint);
}

// ---- holds ---------------------------------------------------------------------------------------------------------

int ProgramRequests::Hold(int device, std::uint64_t max_us) {
  if (!OwnHolds::IsDevice(device) || !OwnHolds::IsLength(max_us)) return XSCHEDD_ERROR_INVALID;
  if (effects_->CheckSession() == XSCHEDD_ERROR_INERT) return XSCHEDD_ERROR_INERT;
  holds_.HoldDevice(device, MonotonicNs() + max_us * 1000);
  effects_->HoldsChanged();
  return XSCHEDD_OK;
}

int ProgramRequests::Release(int device) {
  if (!OwnHolds::IsDevice(device)) return XSCHEDD_ERROR_INVALID;
  holds_.ReleaseDevice(device);
  effects_->HoldsChanged();
  return XSCHEDD_OK;
}

int ProgramRequests::HoldStream(void* stream, std::uint64_t max_us) {
  if (!OwnHolds::IsLength(max_us)) return XSCHEDD_ERROR_INVALID;
  if (effects_->CheckSession() == XSCHEDD_ERROR_INERT) return XSCHEDD_ERROR_INERT;
  holds_.HoldStream(CanonicalStream(stream), MonotonicNs() + max_us * 1000);
  effects_->HoldsChanged();
  return XSCHEDD_OK;
}

int ProgramRequests::ReleaseStream(void* stream) {
  holds_.ReleaseStream(CanonicalStream(stream));
  effects_->HoldsChanged();
  return XSCHEDD_OK;
}

void ProgramRequests::WaitWhileHeld(int device, void* stream) {
  if (holds_.Wait(device, CanonicalStream(stream))) effects_->HoldsChanged();
}

void ProgramRequests::ForgetStream(void* stream) {
  if (deadlines_.Any()) deadlines_.SetStream(stream, 0);
  if (priority_.HasStreams()) SendPriority(priority_.SetStream(stream, std::nullopt));
  if (weight_.HasStreams()) SendWeight(weight_.SetStream(stream, std::nullopt));
  if (holds_.Any()) ReleaseStream(stream);
}

}  // namespace xschedd::shim
