// The last times that one client was held while it had work, for Explain. Bounded; the oldest goes first.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

  void Add(const HeldSpan& span);
  // Oldest first.
  std::vector<HeldSpan> Spans() const;
  // Before this, spans were forgotten; 0: none was.
  std::uint64_t ForgottenUntilNs() const { return forgotten_until_ns_; }

 private:
  // A thousand clients keep kSpans each.
  struct Record {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    std::uint32_t pid;
    std::int8_t priority;
    std::uint8_t why;
    std::uint16_t device;  // into devices_
  };
  static_assert(sizeof(Record) == 24);

  std::vector<Record> records_;
  std::size_t oldest_ = 0;                                   // once there are kSpans
  std::vector<std::shared_ptr<const std::string>> devices_;  // as many as the client has slots
  std::uint64_t forgotten_until_ns_ = 0;
};

}  // namespace xschedd
