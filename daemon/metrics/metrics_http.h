// Serves the metrics over HTTP (Boost.Beast): GET or HEAD of /metrics, in OpenMetrics, or in the older Prometheus text
// format if the Accept header does not ask for OpenMetrics.
//
// A peer is anonymous and may be hostile. So a connection has one request, with at most kMaxHeader bytes of headers and
// no body, kReadLimit to send it and kWriteLimit to read the answer, even if the peer trickles. There are at most
// kMaxConnections; a new one displaces the oldest, so that idle connections keep nobody out. Beyond kAcceptsPerS,
// connections wait in the kernel. metrics_collector.h limits the cost of answers. Thread rule: the daemon's one thread.
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
  static constexpr std::size_t kMaxHeader = 8192;
  static constexpr std::chrono::seconds kReadLimit{5};
  static constexpr std::chrono::seconds kWriteLimit{10};
  static constexpr std::size_t kMaxConnections = 16;
  static constexpr double kAcceptsPerS = 100;

  MetricsHttp(boost::asio::io_context& io, MetricsCollector& collector);
  ~MetricsHttp();

  // `listening` is non-blocking and already listens. Replaces the socket served before.
  void Start(UniqueFd listening);
  void Stop();
  bool IsServing() const { return listening_.is_open(); }
  // Empty: not serving.
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
