// How much of the daemon's processors clients get with what they send: connections, gRPC's frames, messages and calls.
//
// gRPC knows no order among its connections: it reads what there is, on threads that serve administrators, too. So what
// clients send is let in by turns before gRPC sees it, of each user in turn (fair_turns.h), and all together so much
// that it is worth three tenths of a core. The rest waits where it is: in the clients' sockets. Administrators do not
// wait.
//
// Costs are estimates in ns of processor time, of the loop and of gRPC's threads together. Measured with the churn of
// tests/fault: 830 us for a connection, its session, three messages and its end. Too low an estimate lets in too much;
// too high a one makes a thousand clients that start together wait for each other, and they run meanwhile.
// Thread rule: the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>

#include "daemon/connections/fair_turns.h"
#include "daemon/registry/processor_share.h"

namespace xschedd {

namespace cost {
inline constexpr std::uint64_t kConnectNs = 400'000;  // shared memory, gRPC's transport, and the end of both
inline constexpr std::uint64_t kCallNs = 200'000;
inline constexpr std::uint64_t kMessageNs = 40'000;  // either way
inline constexpr std::uint64_t kTurnNs = 25'000;     // reads and writes what a connection has, wakes gRPC
inline constexpr std::uint64_t kByteNs = 100;        // frames of HTTP/2 that have nothing in them are the dearest
}  // namespace cost

class AdmissionControl {
 public:
  // Does what was waited for, and returns its cost.
  using Turn = std::function<std::uint64_t()>;

  explicit AdmissionControl(boost::asio::io_context& io);

  // Calls `turn` once, from the loop, when it is this user's turn.
  void Await(uid_t uid, Turn turn);
  // What was let in made more work than its turn could know.
  void Charge(uid_t uid, std::uint64_t cost_ns);
  // Nothing that waits is called any more.
  void Stop();

 private:
  static constexpr double kShare = 0.3;         // of a core
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
