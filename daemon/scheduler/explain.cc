#include "daemon/scheduler/explain.h"

#include <algorithm>
#include <map>

namespace xschedd {
namespace {

std::string Ms(std::uint64_t ns) {
  const std::uint64_t tenths = ns / (policy::kNsPerMs / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms";
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "0 %" : std::to_string(part * 100 / whole) + " %";
}

std::vector<HeldSpan> SpansSince(const Client& client, std::uint64_t from_ns, std::uint64_t now_ns) {
  std::vector<HeldSpan> spans;
  for (const HeldSpan& span : client.held_log.Spans()) {
    if (span.end_ns <= from_ns) continue;
    spans.push_back(span);
    spans.back().start_ns = std::max(span.start_ns, from_ns);
  }
  for (const auto& [slot, attachment] : client.attachments) {
    if (attachment->held_since_ns == 0) continue;
    spans.push_back(
        {std::max(attachment->held_since_ns, from_ns), now_ns, attachment->device->shared_address, attachment->reason});
  }
  std::sort(spans.begin(), spans.end(), [](const HeldSpan& a, const HeldSpan& b) { return a.start_ns < b.start_ns; });
  return spans;
}

std::string RemedyFor(const Client& client, const Reason& reason, const policy::Settings& settings) {
  const std::string pid = std::to_string(client.identity.pid);
  switch (reason.why) {
    case policy::Why::kHold:
      return "release it: xschedctl release --pid " + pid;
    case policy::Why::kTurn:
      return "let more background clients run at a time: raise max_concurrent (now " +
             (settings.max_concurrent ? std::to_string(*settings.max_concurrent) : "by vendor") + ")";
    case policy::Why::kLinger:
      return "lower linger_us (now " + std::to_string(settings.linger_us) + ")";
    case policy::Why::kPriority:
    case policy::Why::kGang:
      if (client.effective.limited) {
        return "raise the ceiling of uid " + std::to_string(client.identity.uid) + ", which limits it to " +
               std::to_string(client.effective.priority);
      }
      return "give it a priority of " + std::to_string(reason.priority) + " or more to share the device with pid " +
             std::to_string(reason.pid) + ", or raise guard_ms_per_s (now " + std::to_string(settings.guard_ms_per_s) +
             ")";
    case policy::Why::kShare:
      return "give it more weight (now " + std::to_string(client.effective.weight) +
             "), or let it be further ahead: raise share_slack_us (now " + std::to_string(settings.share_slack_us) +
             ")";
    case policy::Why::kDeadline:
      return "give it an earlier deadline or a higher priority than pid " + std::to_string(reason.pid);
    case policy::Why::kFair:
      return "give it a higher priority than pid " + std::to_string(reason.pid) + ", or raise fair_quantum_ms (now " +
             std::to_string(settings.fair_quantum_ms) + ")";
    case policy::Why::kOpen:
    case policy::Why::kGuard:
      break;
  }
  return {};
}

}  // namespace

Explanation ExplainClient(const Client& client, const policy::Settings& settings, std::uint32_t seconds,
                          std::uint64_t now_ns) {
  Explanation result;
  std::uint64_t from = std::max(client.connected_ns, client.held_log.ForgottenUntilNs());
  if (seconds != 0) from = std::max(from, now_ns - std::min(now_ns, seconds * policy::kNsPerS));
  result.observed_ns = now_ns - std::min(from, now_ns);
  result.spans = SpansSince(client, from, now_ns);

  const std::string who =
      "pid " + std::to_string(client.identity.pid) + " (priority " + std::to_string(client.effective.priority) + ")";
  if (client.channel == nullptr) {
    result.summary = who + " has no shared memory and is never held";
    return result;
  }
  // By words: what a reader would call the same reason.
  std::map<std::string, std::pair<std::uint64_t, Reason>> by_reason;
  for (const HeldSpan& span : result.spans) {
    auto& [total, reason] = by_reason[span.reason.Text()];
    total += span.end_ns - span.start_ns;
    reason = span.reason;
    result.held_ns += span.end_ns - span.start_ns;
  }
  if (by_reason.empty()) {
    result.summary = who + " was not held in the last " + Ms(result.observed_ns);
    result.remedy = client.hold ? RemedyFor(client, {.why = policy::Why::kHold}, settings) : "";
    return result;
  }
  const auto worst = std::max_element(by_reason.begin(), by_reason.end(),
                                      [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  const auto& [worst_ns, worst_reason] = worst->second;
  result.summary = who + " had work and was held for " + Ms(result.held_ns) + " of the last " + Ms(result.observed_ns) +
                   " (" + Percent(result.held_ns, result.observed_ns) + "); " + Ms(worst_ns) +
                   " of it because: " + worst->first;
  result.remedy = RemedyFor(client, worst_reason, settings);
  return result;
}

}  // namespace xschedd
