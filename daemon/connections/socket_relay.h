// Carries one connection's bytes between the client's socket and gRPC, which has one end of a socket pair. So the
// daemon can limit how fast a client is read before gRPC sees anything, and notices the connection's end itself.
//
// A client's bytes wait for their turn (admission_control.h), and one connection gets at most kShare of a core for what
// it sends and for the work that this causes (Charge). An administrator's bytes pass at once. Unread data stays in the
// client's socket; nothing is lost. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "daemon/connections/admission_control.h"

namespace xschedd {

class SocketRelay : public std::enable_shared_from_this<SocketRelay> {
 public:
  struct Callbacks {
    std::function<void()> ended;                       // one side has closed, and both are closed; not after Stop
    std::function<std::chrono::milliseconds()> pause;  // how long to read nothing; 0: may read
  };
  // Both sockets are non-blocking. `admission`: null for an administrator, else must outlive this.
  SocketRelay(boost::asio::io_context& io, UniqueFd client, UniqueFd grpc, AdmissionControl* admission,
              Principal principal, Callbacks callbacks);

  void Start();
  // Closes both sockets.
  void Stop();
  // Charges for work that the client's messages caused, in ns of processor time.
  void Charge(std::uint64_t cost_ns);

 private:
  // Two dozen of the smallest messages. Small, because their cost is known only after gRPC has read them.
  static constexpr std::size_t kTurnBytes = 512;
  static constexpr double kShare = 0.05;
  // Enough for a program that creates thousands of streams when it starts, and then sends little.
  static constexpr double kMaxCreditNs = 200e6;

  using Descriptor = boost::asio::posix::stream_descriptor;
  // Bytes that `to` has not taken are kept in `rest`; nothing more is read until they are written.
  struct Direction {
    Descriptor& from;
    Descriptor& to;
    std::string rest;
  };

  void AwaitClient();
  void AwaitTurn();
  std::uint64_t TakeTurn();
  void AwaitGrpc();
  // Returns the number of bytes read. Calls `next` once all of them are written.
  std::size_t Carry(Direction& way, void (SocketRelay::*next)());
  void AwaitRoom(Direction& way, void (SocketRelay::*next)());
  void End();

  Descriptor client_;
  Descriptor grpc_;
  Direction in_{client_, grpc_, {}};
  Direction out_{grpc_, client_, {}};
  AdmissionControl* admission_;
  Principal principal_;
  Callbacks callbacks_;
  ProcessorShare share_{kShare, kMaxCreditNs};
  boost::asio::steady_timer pause_;
  bool stopped_ = false;
};

}  // namespace xschedd
