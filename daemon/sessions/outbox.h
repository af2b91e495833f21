// Messages of a session to its client that are not sent yet, in order. It is bounded, and counts against the memory of
// the client's user. Notices are limited as well: a client that does not read them, or provokes thousands, loses some,
// and the next one says how many. Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "daemon/connections/quotas.h"
#include "daemon/registry/token_bucket.h"
#include "session.pb.h"

namespace xschedd {

class Outbox {
 public:
  // What became of a message: taken, or why not.
  enum class Outcome { kTaken, kUnread, kMemory };
  // Begins to write the message, which stays where it is until Written.
  using Write = std::function<void(const v1::DaemonMessage*)>;

  explicit Outbox(Write write) : write_(std::move(write)) {}
  // `memory` outlives its use here.
  void Begin(Quotas::Holding* memory) { memory_ = memory; }

  // Neither is called before Begin, nor after the session's end. kUnread: the client is to be let go.
  Outcome Send(v1::DaemonMessage message);
  // Whether the notice was taken.
  bool Notice(const std::string& text);
  // The message is written, or cannot be: it goes. Nothing else is written before WriteNext.
  void Written();
  void WriteNext();

 private:
  static constexpr std::size_t kMaxNotices = 32;  // waiting; the rest of the room is for configurations
  static constexpr std::size_t kMaxWaiting = 2 * kMaxNotices;
  static constexpr double kNoticesPerS = 10;
  static constexpr double kNoticesAtOnce = 64;

  void Push(v1::DaemonMessage message);

  Write write_;
  Quotas::Holding* memory_ = nullptr;
  std::deque<v1::DaemonMessage> messages_;  // the first is being written
  TokenBucket notices_{kNoticesPerS, kNoticesAtOnce};
  std::uint64_t notices_left_out_ = 0;
};

}  // namespace xschedd
