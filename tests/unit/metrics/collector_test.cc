// A request for metrics is answered by a count that began after it, and many requests share one.
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/loop.h"
#include "tests/unit/metrics/some_daemon.h"

using namespace xschedd;
using Daemon = test::SomeDaemon;

TEST_CASE("concurrent requests share an answer, and an unrequested format costs nothing") {
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

TEST_CASE("a later request gets a later count, after a pause") {
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

TEST_CASE("other work runs between the pieces") {
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
  // The pause ends at once; after the first piece, other work runs after every piece.
  other();
  daemon.Run(done);
  CHECK(turns > 3);
  const std::uint64_t cost = daemon.collector.Counts().last_cost_ns;
  CHECK(cost > 0);
}

TEST_CASE("a stopping daemon counts no further, however far it is") {
  spdlog::set_level(spdlog::level::off);
  Daemon daemon;
  for (int i = 0; i < 2'000; ++i)
    daemon.core.AddClient({});
  daemon.io.poll();
  int answers = 0;
  daemon.collector.Collect(MetricFormat::kOpenMetrics,
                           [&](const MetricsCollector::Text& text) { answers += text == nullptr ? 1 : 100; });
  SECTION("about to begin") {
    ::usleep(1'000);
    test::RunWith(daemon.io, [&] { daemon.collector.Stop(); });
  }
  SECTION("half-way") {
    daemon.io.run_one();  // the first piece of several
    daemon.collector.Stop();
  }
  test::RunAWhile(daemon.io);
  CHECK(answers == 1);
  CHECK(daemon.collector.Counts().last_cost_ns == 0);  // no count has finished
}

TEST_CASE("without a free descriptor the daemon's memory is unknown, and all else is exported") {
  Daemon daemon;
  daemon.io.poll();
  bool done = false;
  daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) {
    CHECK(text->find("\nprocess_resident_memory_bytes 0\n") != std::string::npos);
    CHECK(text->ends_with("# EOF\n"));
    done = true;
  });
  const test::FewDescriptors none(0);
  daemon.Run(done);
}

TEST_CASE("a device without clients makes room for another, and is no longer exported") {
  spdlog::set_level(spdlog::level::off);
  Daemon daemon;
  const auto address = [](std::size_t i) { return "0000:" + std::to_string(10 + i) + ":00.0"; };
  const auto come = [&](std::size_t device, std::initializer_list<int> priorities) {
    std::vector<std::uint64_t> ids;
    for (const int priority : priorities) {
      NewClient fresh;
      fresh.hints.priority = priority;
      Client& client = daemon.core.AddClient(std::move(fresh));
      REQUIRE(daemon.core.AttachDevice(client, {0, address(device), "GPU", "amd", 4, {}}));
      ids.push_back(client.id);
    }
    return ids;
  };
  for (std::size_t i = 0; i < Meter::kMaxMeteredDevices; ++i) {
    for (const std::uint64_t id : come(i, {-5, 5}))
      daemon.core.RemoveClient(id, "it ended");
  }
  constexpr std::size_t kNew = 2;
  for (std::size_t i = 0; i < kNew; ++i)
    come(Meter::kMaxMeteredDevices + i, {5});
  bool done = false;
  std::string metrics;
  daemon.collector.Collect(MetricFormat::kOpenMetrics, [&](const auto& text) {
    metrics = *text;
    done = true;
  });
  daemon.Run(done);
  const auto rows = [&](std::size_t device) {
    const std::string row = "\nxschedd_launches_total{device=\"" + address(device) + "\"";
    std::size_t count = 0;
    for (std::size_t at = metrics.find(row); at != std::string::npos; at = metrics.find(row, at + 1))
      ++count;
    return count;
  };
  std::size_t all = 0;
  for (std::size_t i = 0; i < Meter::kMaxMeteredDevices; ++i)
    all += rows(i);
  CHECK(all == 2 * (Meter::kMaxMeteredDevices - kNew));
  for (std::size_t i = 0; i < kNew; ++i)
    CHECK(rows(Meter::kMaxMeteredDevices + i) == 1);
}

TEST_CASE("waiting requests are answered when the daemon stops") {
  Daemon daemon;
  int answers = 0;
  const auto then = [&](const MetricsCollector::Text& text) { answers += text == nullptr ? 1 : 100; };
  daemon.collector.Collect(MetricFormat::kOpenMetrics, then);
  daemon.collector.Stop();
  daemon.collector.Collect(MetricFormat::kOpenMetrics, then);
  CHECK(answers == 2);
}
