#include "daemon/connections/admission_control.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/clock.h"

namespace xschedd {

AdmissionControl::AdmissionControl(boost::asio::io_context& io) : io_(io), pause_(io) {}

void AdmissionControl::Await(const Principal& principal, Turn turn) {
  if (stopped_) return;
  turns_.Add(principal, std::move(turn));
  DrainSoon();
}

void AdmissionControl::Charge(const Principal& principal, std::uint64_t cost_ns) {
  turns_.Charge(principal, cost_ns);
  share_.Spend(cost_ns, MonotonicNs());
}

void AdmissionControl::Stop() {
  stopped_ = true;
  pause_.cancel();
  turns_ = {};
}

void AdmissionControl::DrainSoon() {
  if (draining_soon_ || stopped_ || turns_.IsEmpty()) return;
  draining_soon_ = true;
  const std::uint64_t debt = share_.DebtNs(MonotonicNs());
  if (debt == 0) {
    // Posted, so that the loop's other work comes in between.
    boost::asio::post(io_, [this] { Drain(); });
    return;
  }
  pause_.expires_after(std::chrono::nanoseconds(std::max(debt, kMinPauseNs)));
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Drain();
  });
}

void AdmissionControl::Drain() {
  draining_soon_ = false;
  for (int i = 0; i < kTurnsAtOnce && share_.DebtNs(MonotonicNs()) == 0; ++i) {
    auto next = turns_.Next();
    if (!next) return;
    Charge(next->first, next->second());
  }
  DrainSoon();
}

}  // namespace xschedd
