// Runs the scheduler: on a client's eventfd, on a change, when a decision is due, and to renew leases. No timer runs
// while no client is tracked.
//
// The clients' eventfds have an epoll set of their own, edge-triggered: a wake-up costs neither a read nor another
// registration. Clients that wake together are served together, with one decision; but once a decision is needed, for
// no longer than it takes.
//
// A client is paused for some milliseconds when it wakes the daemon more than kWakesPerSecond times a second, or
// exceeds its share of the thread while no time is spare (ledger_cpu_share.h; reading its ledger and deciding about its
// reports count). Meanwhile its descriptor is out of the set, so that its writes cost the daemon nothing. Thread rule:
// the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/registry/processor_share.h"
#include "daemon/registry/token_bucket.h"
#include "daemon/scheduler/ledger_cpu_share.h"
#include "daemon/scheduler/scheduler.h"

namespace xschedd {

class SchedulerLoop {
 public:
  SchedulerLoop(boost::asio::io_context& io, Scheduler& scheduler, std::uint32_t lease_ms);

  // `client` has a channel and lives until Unwatch.
  void Watch(Client& client);
  void Unwatch(std::uint64_t client_id);

  // Decides after the events that are pending now.
  void DecideSoon();
  // Decides before it returns, for an administrator's change, which is answered once it is applied.
  void DecideNow();

  // Whether a gate binds or a client is tracked, as of the last renewal of leases.
  bool HasTracked() const { return lease_armed_; }
  void SetLease(std::uint32_t lease_ms);
  void Stop();

 private:
  static constexpr double kWakesPerSecond = 20'000;
  static constexpr double kBurst = 2'000;
  static constexpr double kMaxCreditNs = 5e6;
  // So few wake-ups are always served: each report of an important client may shut or open a hundred gates.
  static constexpr double kModestPerSecond = 125;
  static constexpr double kModestBurst = 25;

  struct Watched {
    explicit Watched(Client& client_in) : client(client_in), wakes(kWakesPerSecond, kBurst) {}
    Client& client;
    TokenBucket wakes;
    TokenBucket modest{kModestPerSecond, kModestBurst};
    bool is_modest = true;  // when it was last served
    LedgerCpuShare cpu_share;
    std::uint64_t last_report_period = 0;              // for ReportingClients
    std::unique_ptr<boost::asio::steady_timer> pause;  // made when it is first needed
    bool paused = false;
    bool is_unread = false;  // listed in unread_
  };

  void Register(Watched& watched);
  void Unregister(Watched& watched);
  void AwaitEvents();
  void OnEvents();
  void Serve(Watched& watched);
  void Charge(Watched& watched, std::uint64_t cost_ns, std::uint64_t now_ns);
  // It is not modest and has used up its share, and the thread has no time to spare.
  bool MustPause(Watched& watched, std::uint64_t now_ns);
  void Pause(Watched& watched);
  // Decides about the reports of the clients in `reported_`; each pays for the part that is about its user's clients.
  void DecideForReported();
  double Share() const { return LedgerCpuShare::ShareOf(reporters_.Count()); }
  void ServeUnread();
  void ArmDueTimer();
  void ArmLeaseTimer();

  boost::asio::io_context& io_;
  Scheduler& scheduler_;
  boost::asio::posix::stream_descriptor epoll_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Watched>> watched_;  // by client
  std::vector<std::uint64_t> unread_;                                    // clients with more records to read
  ReportingClients reporters_;
  ProcessorShare all_{LedgerCpuShare::kTotal, kMaxCreditNs};  // of all clients together
  std::vector<std::uint64_t> reported_;                       // clients that reported since the last decision
  std::uint64_t usual_decision_ns_ = 0;                       // how long one takes, a moving average
  boost::asio::steady_timer due_timer_;
  std::uint64_t due_armed_ns_ = policy::kNever;
  boost::asio::steady_timer lease_timer_;
  std::uint32_t lease_ms_;
  bool lease_armed_ = false;
  bool decide_posted_ = false;
  bool stopped_ = false;
};

}  // namespace xschedd
