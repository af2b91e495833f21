// Counts and writes the metrics for all who ask, without keeping the scheduler waiting: in pieces, none longer than
// kPieceNs by much, with all else that the loop has to do in between; and so seldom that it takes no more than a
// fiftieth of the daemon's time, however many ask. Who asks while a count is under way gets the next: no answer is
// older than its question. Thread rule: the daemon's one thread.
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

  // `root`: what stands before /sys and /proc.
  MetricsCollector(boost::asio::io_context& io, Core& core, const Connections& connections, const Quotas& quotas,
                   const std::string& root = {});

  // Calls `then` later, with the text; with null when the daemon stops.
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
  // One step; false: the whole is done.
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
  bool busy_ = false;  // a count is under way, or about to be
  bool stopped_ = false;
  std::uint64_t not_before_ns_ = 0;
  std::vector<Waiting> asked_;    // for the next count
  std::vector<Waiting> serving_;  // by the present one

  // The present count: who was counted last, what is being written, and in which formats.
  std::uint64_t cost_ns_ = 0;
  bool counted_ = false;
  std::uint64_t last_client_ = 0;
  std::unordered_set<std::uint64_t> pids_;  // of those who were counted
  std::size_t writer_ = 0;
  std::size_t place_ = 0;
  std::array<std::optional<Exposition>, kFormats> out_;
};

}  // namespace xschedd
