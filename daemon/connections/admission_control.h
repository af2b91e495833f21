// Limits the processor time that clients' traffic can cost: connections, gRPC frames, messages and calls.
//
// gRPC has no order among its connections: it reads whatever arrives, on threads that serve administrators, too.
// Therefore what clients send is admitted before gRPC sees it: users take turns (fair_turns.h), and all together get
// three tenths of a core. The rest waits in the clients' sockets. Administrators do not wait.
//
// Costs are estimates in ns of processor time, of the loop and of gRPC's threads together. Measured with the churn of
// tests/fault: 830 us for a connection, its session, three messages and its end. Too low an estimate lets in too much;
// too high a one makes a thousand clients that start together wait for each other (they run meanwhile).
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
  // Does the admitted work, and returns its cost.
  using Turn = std::function<std::uint64_t()>;

  explicit AdmissionControl(boost::asio::io_context& io);

  // Calls `turn` once, from the loop, when it is this user's turn.
  void Await(uid_t uid, Turn turn);
  // Admitted work has caused further work, whose cost the turn could not know.
  void Charge(uid_t uid, std::uint64_t cost_ns);
  // No turn is called any more.
  void Stop();

 private:
  static constexpr double kShare = 0.3;         // of a core
  static constexpr double kMaxCreditNs = 10e6;  // no more than this goes to gRPC at once: administrators wait behind it
  static constexpr int kTurnsAtOnce = 4;
  static constexpr std::uint64_t kMinPauseNs = 1'000'000;

  void DrainSoon();
  void Drain();

  boost::asio::io_context& io_;
  boost::asio::steady_timer pause_;
  FairTurns<Turn> turns_;
  ProcessorShare share_{kShare, kMaxCreditNs};
  bool draining_soon_ = false;
  bool stopped_ = false;
};

}  // namespace xschedd
