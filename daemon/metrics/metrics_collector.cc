#include "daemon/metrics/metrics_collector.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/clock.h"
#include "daemon/registry/pci_address.h"

namespace xschedd {
namespace {

// Anything longer was an interruption, not our work.
constexpr std::uint64_t kLongestPieceNs = 200'000;

}  // namespace

MetricsCollector::MetricsCollector(boost::asio::io_context& io, Core& core, const Connections& connections,
                                   const Quotas& quotas, const std::string& root)
    : io_(io),
      core_(core),
      unscheduled_(root),
      sources_{core, connections, quotas, counts_, unscheduled_counts_},
      pause_(io) {}

void MetricsCollector::Collect(MetricFormat format, Then then) {
  if (stopped_) return then(nullptr);
  asked_.push_back({format, std::move(then)});
  if (!busy_) BeginSoon();
}

void MetricsCollector::Stop() {
  stopped_ = true;
  pause_.cancel();
  for (std::vector<Waiting>* all : {&asked_, &serving_}) {
    for (const Waiting& one : std::exchange(*all, {}))
      one.then(nullptr);
  }
}

void MetricsCollector::BeginSoon() {
  busy_ = true;
  const std::uint64_t now = MonotonicNs();
  pause_.expires_after(std::chrono::nanoseconds(not_before_ns_ - std::min(not_before_ns_, now)));
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped_) Begin();
  });
}

void MetricsCollector::Begin() {
  serving_ = std::exchange(asked_, {});
  for (const Waiting& one : serving_) {
    auto& out = out_[static_cast<std::size_t>(one.format)];
    if (!out) out.emplace(one.format);
  }
  cost_ns_ = 0;
  counted_ = false;
  last_client_ = 0;
  pids_.clear();
  writer_ = 0;
  place_ = 0;
  core_.Metrics().Begin();
  Piece();
}

void MetricsCollector::PieceSoon() {
  boost::asio::post(io_, [this] {
    if (!stopped_) Piece();
  });
}

void MetricsCollector::Piece() {
  const std::uint64_t began = MonotonicNs();
  std::uint64_t now = began;
  bool more = true;
  while (more && now - began < kPieceNs) {
    more = Step();
    now = MonotonicNs();
  }
  cost_ns_ += std::min(now - began, kLongestPieceNs);
  if (more) return PieceSoon();
  End();
}

bool MetricsCollector::Step() {
  if (counted_) return WriteNext();
  if (!CountNext()) {
    core_.Metrics().End();
    core_.Metrics().Claims().ChooseSeries(UnixMs());
    core_.Metrics().Spaces().ChooseSeries();
    CountUnscheduled();
    counted_ = true;
  }
  return true;
}

bool MetricsCollector::CountNext() {
  // By id, because clients may have come or gone since the last piece.
  const auto& clients = core_.Clients().Clients();
  const auto next = clients.upper_bound(last_client_);
  if (next == clients.end()) return false;
  last_client_ = next->first;
  core_.Metrics().Count(*next->second, MonotonicNs());
  pids_.insert(next->second->identity.pid);
  return true;
}

void MetricsCollector::CountUnscheduled() {
  unscheduled_counts_ = unscheduled_.Count(pids_);
  // Only now, so that what is exported does not depend on whether a scan is faster than the count of the clients.
  unscheduled_.ScanSoon(MonotonicNs());
  if (!unscheduled_counts_) return;
  // A device that clients have used is exported even at zero.
  for (const DeviceAccount& device : core_.Metrics().Devices())
    if (IsPciAddress(device.id)) unscheduled_counts_->try_emplace(device.id.substr(0, device.id.find('/')), 0);
}

bool MetricsCollector::WriteNext() {
  const auto writers = MetricWriters();
  if (writer_ == writers.size()) return false;
  const MetricWriter& writer = writers[writer_];
  const Meter& meter = core_.Metrics();
  const std::size_t places = writer.each == MetricWriter::Each::kOnce     ? 1
                             : writer.each == MetricWriter::Each::kDevice ? meter.Devices().size()
                                                                          : meter.Accounts().size();
  for (std::optional<Exposition>& out : out_) {
    if (!out) continue;
    if (place_ == 0) out->Begin(writer.family);
    writer.write(sources_, place_, *out);
  }
  if (++place_ >= places) {
    ++writer_;
    place_ = 0;
  }
  return true;
}

void MetricsCollector::End() {
  counts_.last_cost_ns = cost_ns_;
  not_before_ns_ = MonotonicNs() + std::max(kLeastPauseNs, cost_ns_ * kPausePerCost);
  std::array<Text, kFormats> texts;
  for (std::size_t i = 0; i < kFormats; ++i) {
    if (out_[i]) texts[i] = std::make_shared<const std::string>(out_[i]->Finish());
    out_[i].reset();
  }
  busy_ = false;
  for (const Waiting& one : std::exchange(serving_, {}))
    one.then(texts[static_cast<std::size_t>(one.format)]);
  if (!asked_.empty() && !busy_) BeginSoon();
}

}  // namespace xschedd
