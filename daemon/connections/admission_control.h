// Limits the processor time that client traffic can cost: connections, gRPC frames, messages and calls.
//
// gRPC does not order its connections: it reads whatever arrives, on threads that also serve administrators. So client
// traffic is admitted before gRPC sees it. Principals take turns (fair_turns.h), and all of them together get three
// tenths of a core; the rest waits in the clients' sockets. Administrators never wait.
//
// Costs are estimates in ns of processor time, for the loop and gRPC's threads together. Measured with the churn of
// tests/fault: 830 us for a connection, its session, three messages and its end. Low estimates admit too much; high
// ones make a thousand clients that start together wait for each other (they run meanwhile). Thread rule: the daemon's
// one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>

#include "daemon/connections/fair_turns.h"
#include "daemon/registry/processor_share.h"

namespace xschedd {

namespace cost {
inline constexpr std::uint64_t kConnectNs = 400'000;  // setting up and tearing down shared memory and gRPC's transport
inline constexpr std::uint64_t kCallNs = 200'000;
inline constexpr std::uint64_t kMessageNs = 40'000;  // in either direction
inline constexpr std::uint64_t kTurnNs = 25'000;     // relaying one read, and waking gRPC
inline constexpr std::uint64_t kByteNs = 100;        // the worst case: empty HTTP/2 frames
}  // namespace cost

class AdmissionControl {
 public:
  // Does the admitted work and returns its cost.
  using Turn = std::function<std::uint64_t()>;

  explicit AdmissionControl(boost::asio::io_context& io);

  // Calls `turn` once, from the loop, when it is this principal's turn.
  void Await(const Principal& principal, Turn turn);
  // Charges for work that an admitted turn caused later and could not report.
  void Charge(const Principal& principal, std::uint64_t cost_ns);
  // Drops all waiting turns; none is called afterwards.
  void Stop();

 private:
  static constexpr double kShare = 0.3;         // of a core
  static constexpr double kMaxCreditNs = 10e6;  // limits bursts to gRPC, since administrators wait behind them
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
