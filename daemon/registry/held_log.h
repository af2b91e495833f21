// The last times that one client was held while it had work, for Explain. Bounded; the oldest goes first.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "daemon/policy/types.h"

namespace xschedd {

// Why a gate is as it is, small enough to keep by the thousand; Text() makes words of it when somebody asks.
struct Reason {
  policy::Why why = policy::Why::kOpen;
  std::uint64_t pid = 0;  // whom it waits for; 0: nobody in particular
  int priority = 0;       // of that client
  std::string Text() const;
};

struct HeldSpan {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::shared_ptr<const std::string> device;
  Reason reason;
};

class HeldLog {
 public:
  static constexpr std::size_t kSpans = 128;

  void Add(HeldSpan span) {
    if (spans_.size() == kSpans) {
      forgotten_until_ns_ = spans_.front().end_ns;
      spans_.pop_front();
    }
    spans_.push_back(std::move(span));
  }
  const std::deque<HeldSpan>& Spans() const { return spans_; }
  // Before this, spans were forgotten; 0: none was.
  std::uint64_t ForgottenUntilNs() const { return forgotten_until_ns_; }

 private:
  std::deque<HeldSpan> spans_;
  std::uint64_t forgotten_until_ns_ = 0;
};

}  // namespace xschedd
