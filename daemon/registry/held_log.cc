#include "daemon/registry/held_log.h"

#include <algorithm>

namespace xschedd {

std::string Reason::Text() const {
  const std::string who = "pid " + std::to_string(pid) + " (priority " + std::to_string(priority) + ")";
  switch (why) {
    case policy::Why::kOpen:
      return "nobody more important is busy";
    case policy::Why::kGuard:
      return "the starvation guard gives it a turn";
    case policy::Why::kHold:
      return "hold by an administrator";
    case policy::Why::kPriority:
      return who + " is busy";
    case policy::Why::kLinger:
      return who + " has just become idle";
    case policy::Why::kGang:
      return who + " is busy on another device of the group";
    case policy::Why::kTurn:
      return "it is the turn of " + who;
    case policy::Why::kShare:
      return "ahead of its share; " + who + " is behind";
    case policy::Why::kDeadline:
      return who + " has a deadline that comes before";
    case policy::Why::kFair:
      return who + " has had less of the device";
  }
  return "unknown";
}

void HeldLog::Add(const HeldSpan& span) {
  const auto known = std::find(devices_.begin(), devices_.end(), span.device);
  const auto device = static_cast<std::uint16_t>(known - devices_.begin());
  if (known == devices_.end()) devices_.push_back(span.device);
  const Record record{.start_ns = span.start_ns,
                      .end_ns = span.end_ns,
                      .pid = static_cast<std::uint32_t>(span.reason.pid),  // pid_t has 32 bits
                      .priority = static_cast<std::int8_t>(span.reason.priority),
                      .why = static_cast<std::uint8_t>(span.reason.why),
                      .device = device};
  if (records_.size() < kSpans) {
    records_.push_back(record);
    return;
  }
  forgotten_until_ns_ = records_[oldest_].end_ns;
  records_[oldest_] = record;
  oldest_ = (oldest_ + 1) % kSpans;
}

std::vector<HeldSpan> HeldLog::Spans() const {
  std::vector<HeldSpan> spans;
  spans.reserve(records_.size());
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const Record& record = records_[(oldest_ + i) % records_.size()];
    const Reason reason{.why = static_cast<policy::Why>(record.why), .pid = record.pid, .priority = record.priority};
    spans.push_back({record.start_ns, record.end_ns, devices_[record.device], reason});
  }
  return spans;
}

}  // namespace xschedd
