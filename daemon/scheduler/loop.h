// When the scheduler runs: on a client's eventfd, on a change, when a decision's time has come, and to renew leases.
// Nothing runs while there is nothing to do: no client tracked, no timer.
//
// A client that wakes the daemon more than kWakesPerSecond times a second is left alone for a few milliseconds at a
// time: its descriptor is taken out of the poll set, so that its writes cost the daemon nothing. Thread rule: the
// daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>

#include "daemon/scheduler/scheduler.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {

class SchedulerLoop {
 public:
  SchedulerLoop(boost::asio::io_context& io, Scheduler& scheduler, std::uint32_t lease_ms);

  // `client` has a channel and lives until Unwatch.
  void Watch(Client& client);
  void Unwatch(std::uint64_t client_id);

  // Something changed: decides once the events at hand have been looked at.
  void DecideSoon();
  // Decides before it returns: for an administrator's change, which is answered when it has been applied.
  void DecideNow();

  void SetLease(std::uint32_t lease_ms);
  void Stop();

 private:
  static constexpr double kWakesPerSecond = 20'000;
  static constexpr double kBurst = 2'000;

  struct Watched {
    Watched(boost::asio::io_context& io, Client& client_in)
        : client(client_in), eventfd(io), pause(io), wakes(kWakesPerSecond, kBurst) {}
    Client& client;
    boost::asio::posix::stream_descriptor eventfd;  // lent by the client's channel
    boost::asio::steady_timer pause;
    TokenBucket wakes;
  };

  void AwaitEvent(const std::shared_ptr<Watched>& watched);
  void OnEvent(const std::shared_ptr<Watched>& watched);
  void Pause(const std::shared_ptr<Watched>& watched);
  void ServeAgainSoon(const std::shared_ptr<Watched>& watched);
  void ArmLook();
  void ArmLease();

  boost::asio::io_context& io_;
  Scheduler& scheduler_;
  std::map<std::uint64_t, std::shared_ptr<Watched>> watched_;  // by client
  boost::asio::steady_timer look_;
  std::uint64_t look_armed_ns_ = policy::kNever;
  boost::asio::steady_timer lease_;
  std::uint32_t lease_ms_;
  bool lease_armed_ = false;
  bool decide_posted_ = false;
  bool stopped_ = false;
};

}  // namespace xschedd
