// A session's unsent messages to its client, in order. Bounded, and charged to the user's memory quota. Notices are
// limited further: a client that does not read them, or provokes thousands, loses some; the next notice says how many.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <utility>

#include "daemon/connections/quotas.h"
#include "daemon/registry/token_bucket.h"
#include "session.pb.h"

namespace xschedd {

class Outbox {
 public:
  // kUnread: too many are unread. kMemory: the user's quota is used up.
  enum class Outcome { kTaken, kUnread, kMemory };
  // Starts writing the message, which stays in place until Written.
  using Write = std::function<void(const v1::DaemonMessage*)>;

  explicit Outbox(Write write) : write_(std::move(write)) {}
  // `memory` must outlive its use here.
  void Begin(Quotas::Holding* memory) { memory_ = memory; }

  // Call Send and Notice only between Begin and the session's end. On kUnread the caller drops the client.
  Outcome Send(v1::DaemonMessage message);
  // False: the notice was left out.
  bool Notice(const std::string& text);
  // The write is done or has failed: removes the message. Nothing more is written before WriteNext.
  void Written();
  void WriteNext();

 private:
  static constexpr std::size_t kMaxNotices = 32;  // waiting; the rest of kMaxWaiting is for configurations
  static constexpr std::size_t kMaxWaiting = 2 * kMaxNotices;
  static constexpr double kNoticesPerS = 10;
  static constexpr double kNoticesAtOnce = 64;

  void Push(v1::DaemonMessage message);

  Write write_;
  Quotas::Holding* memory_ = nullptr;
  // The front is being written. Nearly always empty: an empty deque would take half a kilobyte.
  std::list<v1::DaemonMessage> messages_;
  TokenBucket notices_{kNoticesPerS, kNoticesAtOnce};
  std::uint64_t notices_left_out_ = 0;
};

}  // namespace xschedd
