#include "client-shim/core/state_reports.h"

#include "client-shim/core/environment.h"
#include "common/priority.h"

namespace xschedd::shim {
namespace {

HintMessage DeadlineOf(std::uint64_t queue, std::uint64_t us) {
  HintMessage hint;
  hint.deadline_us = us;
  hint.queue = queue;
  return hint;
}

}  // namespace

void StateReports::Begin(const ProcessHints& told) {
  hints_ = told;
  for (auto& [queue, known] : queues_)
    known.is_of_session = false;
}

std::vector<std::uint64_t> StateReports::Known() const {
  std::vector<std::uint64_t> queues;
  queues.reserve(queues_.size());
  for (const auto& [queue, known] : queues_)
    queues.push_back(queue);
  return queues;
}

std::optional<HintMessage> StateReports::UpdateHints(const ProcessHints& now) {
  if (now == hints_) return std::nullopt;
  // The protocol cannot remove a hint. The default has the same effect.
  HintMessage hint;
  if (now.priority != hints_.priority) hint.priority = now.priority.value_or(kPriorityDefault);
  if (now.weight != hints_.weight) hint.weight = now.weight.value_or(kDefaultWeight);
  if (now.deadline_us != hints_.deadline_us) hint.deadline_us = now.deadline_us.value_or(0);
  hints_ = now;
  return hint;
}

std::vector<OutgoingMessage> StateReports::UpdateQueue(std::uint64_t queue, const std::optional<LiveQueue>& now) {
  std::vector<OutgoingMessage> messages;
  const bool is_default = queue == kDefaultQueue;
  // A daemon that was restarted gives a queue of this id the deadline that the last one had.
  const auto found = queues_.find(queue);
  const Told before = found != queues_.end() ? found->second : Told{};
  const bool is_told = before.is_of_session && (is_default || (now && now->number == before.number));
  if (before.is_of_session && !is_told) messages.emplace_back(QueueDestroyedMessage{queue});
  if (!now) {
    // Of one of an earlier session, a restarted daemon may have the deadline until it is told.
    if (before.is_of_session || before.deadline_us == 0) queues_.erase(queue);
    return messages;
  }
  if (!is_told && !is_default) messages.emplace_back(now->created);
  const bool is_same = now->deadline_us == before.deadline_us;
  const bool has_none = now->deadline_us == 0 && before.deadline_us == 0;
  if (is_told ? !is_same : !has_none) messages.emplace_back(DeadlineOf(queue, now->deadline_us));
  queues_[queue] = Told{now->number, now->deadline_us, true};
  return messages;
}

}  // namespace xschedd::shim
