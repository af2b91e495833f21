// What the daemon was told of the process's hints and streams, and the messages that bring it up to date.
//
// The messages are made of the state at the time that the daemon can take them. So what changes faster than that, or
// while the daemon does not read, is not queued, and the daemon learns the newest. Thread rule: the agent's.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "client-shim/core/control_messages.h"

namespace xschedd::shim {

// Without a value: none.
struct ProcessHints {
  std::optional<int> priority;
  std::optional<std::uint32_t> weight;
  std::optional<std::uint64_t> deadline_us;
  bool operator==(const ProcessHints&) const = default;
};

struct LiveQueue {
  std::uint64_t number = 0;  // differs for each stream that is made, also at a handle that was used before
  QueueCreatedMessage created;
  std::uint64_t deadline_us = 0;  // its own; 0: none
};

class StateReports {
 public:
  // The id of all default streams, which are never created.
  static constexpr std::uint64_t kDefaultQueue = 0;

  // A session begins, whose first message has these hints. Of queues the daemon may know what an earlier one told it; a
  // queue is told again when UpdateQueue is called for it.
  void Begin(const ProcessHints& told);
  // The queues that UpdateQueue is to be called for after Begin, beside those that live.
  std::vector<std::uint64_t> Known() const;

  // The message that tells what differs; without a value: nothing does.
  std::optional<HintMessage> UpdateHints(const ProcessHints& now);
  // The messages that tell what differs, in order. `now`: without a value, there is no such stream; ignored for
  // kDefaultQueue but for its deadline.
  std::vector<OutgoingMessage> UpdateQueue(std::uint64_t queue, const std::optional<LiveQueue>& now);

 private:
  struct Told {
    std::uint64_t number = 0;
    std::uint64_t deadline_us = 0;
    bool is_of_session = false;  // of this one
  };

  ProcessHints hints_;
  std::unordered_map<std::uint64_t, Told> queues_;
};

}  // namespace xschedd::shim
