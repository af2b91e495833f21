// Serves the metrics over HTTP: GET or HEAD of /metrics, in OpenMetrics or, where the Accept header does not ask for
// it, in the older text format of Prometheus. HTTP is Boost.Beast's.
//
// Whoever may connect may be hostile, and nobody knows who it is. So one request a connection, its headers at most
// kMostHeader bytes, no body; kReadLimit to send it and kWriteLimit to take the answer, however little at a time; at
// most kMostConnections, of which a new one displaces the oldest, so that nobody keeps others out by doing nothing; and
// kAcceptsPerS, more wait in the kernel. What an answer costs: metrics_collector.h. Thread rule: the daemon's one
// thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "daemon/metrics/metrics_collector.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {

class MetricsHttp {
 public:
  static constexpr std::size_t kMostHeader = 8192;
  static constexpr std::chrono::seconds kReadLimit{5};
  static constexpr std::chrono::seconds kWriteLimit{10};
  static constexpr std::size_t kMostConnections = 16;
  static constexpr double kAcceptsPerS = 100;

  MetricsHttp(boost::asio::io_context& io, MetricsCollector& collector);
  ~MetricsHttp();

  // Non-blocking and listening. Replaces what it served on before.
  void Start(UniqueFd listening);
  void Stop();
  bool IsServing() const { return listening_.is_open(); }
  // Where; empty: nowhere.
  const std::string& Address() const { return address_; }

 private:
  class Session;
  friend class Session;

  void Await();
  void Accept();
  void PauseAccepting(std::chrono::milliseconds pause);

  boost::asio::io_context& io_;
  MetricsCollector& collector_;
  boost::asio::posix::stream_descriptor listening_;
  boost::asio::steady_timer pause_;
  TokenBucket accepts_;
  std::string address_;
  std::list<std::shared_ptr<Session>> sessions_;  // oldest first
};

}  // namespace xschedd
