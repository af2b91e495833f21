// Counts and writes the metrics for all requests without delaying the scheduler: in pieces of little more than
// kPieceNs, between which the loop does its other work, and for at most a fiftieth of the daemon's time, however many
// requests there are. A request that arrives during a count gets the next one, so no answer is older than its request.
// Thread rule: the daemon's one thread.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/metrics/metrics_families.h"
#include "daemon/metrics/unscheduled.h"

namespace xschedd {

class MetricsCollector {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Then = std::function<void(const Text&)>;

  static constexpr std::uint64_t kPieceNs = 30'000;
  static constexpr std::uint64_t kLeastPauseNs = 20'000'000;
  static constexpr std::uint64_t kPausePerCost = 49;

  // `root` is put before /sys and /proc.
  MetricsCollector(boost::asio::io_context& io, Core& core, const Connections& connections, const Quotas& quotas,
                   const std::string& root = {});

  // Calls `then` later with the text; null: the daemon stops.
  void Collect(MetricFormat format, Then then);
  void Stop();

  MetricsCounts& Counts() { return counts_; }

 private:
  static constexpr std::size_t kFormats = 2;

  struct Waiting {
    MetricFormat format;
    Then then;
  };

  void BeginSoon();
  void Begin();
  void Piece();
  void PieceSoon();
  // False: the count is complete.
  bool Step();
  bool CountNext();
  void CountUnscheduled();
  bool WriteNext();
  void End();

  boost::asio::io_context& io_;
  Core& core_;
  MetricsCounts counts_;
  UnscheduledUsers unscheduled_;
  UnscheduledCounts unscheduled_counts_;
  const MetricsSources sources_;
  boost::asio::steady_timer pause_;
  bool busy_ = false;  // a count is running or scheduled
  bool stopped_ = false;
  std::uint64_t not_before_ns_ = 0;
  std::vector<Waiting> asked_;    // for the next count
  std::vector<Waiting> serving_;  // by the current count

  // The current count.
  std::uint64_t cost_ns_ = 0;
  bool counted_ = false;
  std::uint64_t last_client_ = 0;
  std::unordered_set<std::uint64_t> pids_;  // of the clients counted so far
  std::size_t writer_ = 0;
  std::size_t place_ = 0;
  std::array<std::optional<Exposition>, kFormats> out_;
};

}  // namespace xschedd
