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
  return TellIf(priority_.Set(is_none ? std::nullopt : std::optional(priority)));
}

int ProgramRequests::SetWeight(unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return TellIf(weight_.Set(is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

int ProgramRequests::SetStreamPriority(void* stream, int priority) {
  const bool is_none = priority == XSCHEDD_PRIORITY_NONE;
  if (!is_none && !IsPriority(priority)) return XSCHEDD_ERROR_INVALID;
  const bool changed = priority_.SetStream(CanonicalStream(stream), is_none ? std::nullopt : std::optional(priority));
  effects_->StreamPrioritiesChanged();
  return TellIf(changed);
}

int ProgramRequests::SetStreamWeight(void* stream, unsigned weight) {
  const bool is_none = weight == XSCHEDD_WEIGHT_NONE;
  if (!is_none && !IsWeight(weight)) return XSCHEDD_ERROR_INVALID;
  return TellIf(
      weight_.SetStream(CanonicalStream(stream), is_none ? std::nullopt : std::optional<std::uint32_t>(weight)));
}

ProcessHints ProgramRequests::ToTell() const {
  const std::uint64_t deadline_us = deadlines_.OfProcess();
  return {priority_.Highest(), weight_.Highest(), deadline_us == 0 ? std::nullopt : std::optional(deadline_us)};
}

// ---- deadlines -----------------------------------------------------------------------------------------------------

int ProgramRequests::SetDeadline(std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  deadlines_.Set(us);
  effects_->DeadlinesChanged();
  return effects_->HintsChanged();
}

int ProgramRequests::SetStreamDeadline(void* stream, std::uint64_t us) {
  if (!Deadlines::IsDeadline(us)) return XSCHEDD_ERROR_INVALID;
  deadlines_.SetStream(CanonicalStream(stream), us);
  effects_->DeadlinesChanged();
  return effects_->StreamDeadlineChanged(stream);
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
  if (priority_.HasStreams()) TellIf(priority_.SetStream(stream, std::nullopt));
  if (weight_.HasStreams()) TellIf(weight_.SetStream(stream, std::nullopt));
  if (holds_.Any()) ReleaseStream(stream);
}

}  // namespace xschedd::shim
