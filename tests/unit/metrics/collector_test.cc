// Who asks for metrics is answered by a count that began after the question, and many who ask cost one.
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <functional>

#include "common/clock.h"
#include "daemon/ipc/metrics_collector.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

struct Daemon {
  boost::asio::io_context io;
  Core core{io, ConfigSource{}, Config{}};
  Quotas quotas{Quota{}};
  Connections connections{io, quotas, {}};
  MetricsCollector collector{io, core, connections, quotas};

  void Run(const bool& until) {
    while (!until)
      io.run_one();
  }
};

}  // namespace

TEST_CASE("those who ask together share an answer, and one format costs nothing where it is not asked for") {
  Daemon daemon;
  std::vector<MetricsCollector::Text> open;
  bool done = false;
  for (int i = 0; i < 10; ++i)
    daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) { open.push_back(text); });
  daemon.collector.Collect(MetricFormat::kPrometheus, [&](const auto& text) {
    CHECK(text->find("# EOF") == std::string::npos);
    done = true;
  });
  daemon.Run(done);
  REQUIRE(open.size() == 10);
  for (const auto& text : open)
    CHECK(text == open.front());
  CHECK(open.front()->ends_with("# EOF\n"));
  CHECK(open.front()->find("xschedd_clients 0\n") != std::string::npos);
}

TEST_CASE("who asks later gets a later count, after a pause") {
  Daemon daemon;
  std::vector<MetricsCollector::Text> texts;
  std::uint64_t first_ns = 0;
  bool done = false;
  daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) {
    texts.push_back(text);
    first_ns = MonotonicNs();
    daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& later) {
      texts.push_back(later);
      done = true;
    });
  });
  daemon.Run(done);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] != texts[1]);
  CHECK(MonotonicNs() - first_ns >= MetricsCollector::kLeastPauseNs);
}

TEST_CASE("others have their turn between the pieces") {
  spdlog::set_level(spdlog::level::off);
  Daemon daemon;
  for (int i = 0; i < 2'000; ++i)
    daemon.core.AddClient({});
  daemon.io.poll();
  bool done = false;
  unsigned turns = 0;
  std::function<void()> other = [&] {
    ++turns;
    if (!done) boost::asio::post(daemon.io, other);
  };
  daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) {
    CHECK(text->find("xschedd_clients 2000\n") != std::string::npos);
    done = true;
  });
  // The pause is over at once; from the first piece on, every piece is followed by a turn.
  other();
  daemon.Run(done);
  CHECK(turns > 3);
  const std::uint64_t cost = daemon.collector.Counts().last_cost_ns;
  CHECK(cost > 0);
}

TEST_CASE("who waits when the daemon stops is told") {
  Daemon daemon;
  int told = 0;
  const auto then = [&](const MetricsCollector::Text& text) { told += text == nullptr ? 1 : 100; };
  daemon.collector.Collect(MetricFormat::kOpenMetrics, then);
  daemon.collector.Stop();
  daemon.collector.Collect(MetricFormat::kOpenMetrics, then);
  CHECK(told == 2);
}
