// How much of the daemon's processors clients get with what they send: connections, gRPC's frames, messages and calls.
//
// gRPC knows no order among its connections: it reads what there is, on threads that serve administrators, too. So what
// clients send is let in by turns before gRPC sees it, of each user in turn (fair_turns.h), and all together so much
// that it is worth half a core. The rest waits where it is: in the clients' sockets. Administrators do not wait.
//
// Costs are estimates in ns of processor time, of the loop and of gRPC's threads together. Measured with the churn of
// tests/fault: 830 us for a connection, its session, three messages and its end. Too low an estimate lets in too much;
// too high a one makes a thousand clients that start together wait for each other, and they run meanwhile.
// Thread rule: the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>

#include "daemon/ipc/fair_turns.h"

namespace xschedd {

namespace cost {
inline constexpr std::uint64_t kConnectNs = 400'000;  // shared memory, gRPC's transport, and the end of both
inline constexpr std::uint64_t kCallNs = 200'000;
inline constexpr std::uint64_t kMessageNs = 40'000;  // either way
inline constexpr std::uint64_t kTurnNs = 25'000;     // reads and writes what a connection has, wakes gRPC
inline constexpr std::uint64_t kByteNs = 100;        // frames of HTTP/2 that have nothing in them are the dearest
}  // namespace cost

// A share of processor time with something saved up, and a debt that is paid back.
class ProcessorShare {
 public:
  ProcessorShare(double share, double most_saved_ns)
      : share_(share), most_saved_(most_saved_ns), saved_(most_saved_ns) {}

  void Spend(std::uint64_t cost_ns, std::uint64_t now_ns) {
    const auto passed = static_cast<double>(now_ns - std::min(last_ns_, now_ns));
    if (last_ns_ != 0) saved_ = std::min(most_saved_, saved_ + passed * share_);
    last_ns_ = now_ns;
    saved_ -= static_cast<double>(cost_ns);
  }
  // Until the debt is paid back, in ns; 0: there is none.
  std::uint64_t DebtNs(std::uint64_t now_ns) {
    Spend(0, now_ns);
    return saved_ >= 0 ? 0 : static_cast<std::uint64_t>(-saved_ / share_) + 1;
  }

 private:
  double share_;
  double most_saved_;
  double saved_;
  std::uint64_t last_ns_ = 0;
};

class Intake {
 public:
  // Does what was waited for, and returns its cost.
  using Turn = std::function<std::uint64_t()>;

  explicit Intake(boost::asio::io_context& io);

  // Calls `turn` once, from the loop, when it is this user's turn.
  void Await(uid_t uid, Turn turn);
  // What was let in made more work than its turn could know.
  void Charge(uid_t uid, std::uint64_t cost_ns);
  // Nothing that waits is called any more.
  void Stop();

 private:
  static constexpr double kShare = 0.5;         // of a core
  static constexpr double kMostSavedNs = 10e6;  // no more than this goes to gRPC at once: administrators wait behind it
  static constexpr int kTurnsAtOnce = 4;
  static constexpr std::uint64_t kLeastPauseNs = 1'000'000;

  void DrainSoon();
  void Drain();

  boost::asio::io_context& io_;
  boost::asio::steady_timer pause_;
  FairTurns<Turn> turns_;
  ProcessorShare share_{kShare, kMostSavedNs};
  bool draining_soon_ = false;
  bool stopped_ = false;
};

}  // namespace xschedd
