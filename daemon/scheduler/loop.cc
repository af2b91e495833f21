#include "daemon/scheduler/loop.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>

#include "common/clock.h"

namespace xschedd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kPause{5};
constexpr std::uint32_t kRenewalsPerLease = 4;

// libstdc++'s steady clock is CLOCK_MONOTONIC, the clock of MonotonicNs().
std::chrono::steady_clock::time_point At(std::uint64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

SchedulerLoop::SchedulerLoop(asio::io_context& io, Scheduler& scheduler, std::uint32_t lease_ms)
    : io_(io), scheduler_(scheduler), look_(io), lease_(io), lease_ms_(lease_ms) {
  scheduler_.SetLease(lease_ms);
}

void SchedulerLoop::SetLease(std::uint32_t lease_ms) {
  lease_ms_ = lease_ms;
  scheduler_.SetLease(lease_ms);
}

void SchedulerLoop::Watch(Client& client) {
  const auto watched = std::make_shared<Watched>(io_, client);
  watched->eventfd.assign(client.channel->EventFd());
  watched_.emplace(client.id, watched);
  // From here on the client must wake us; what it published before is read now.
  if (scheduler_.Serve(client)) {
    AwaitEvent(watched);
  } else {
    ServeAgainSoon(watched);
  }
}

void SchedulerLoop::Unwatch(std::uint64_t client_id) {
  const auto found = watched_.find(client_id);
  if (found == watched_.end()) return;
  Watched& watched = *found->second;
  watched.pause.cancel();
  if (watched.eventfd.is_open()) watched.eventfd.release();  // cancels the wait; the channel closes the descriptor
  watched_.erase(found);
}

void SchedulerLoop::AwaitEvent(const std::shared_ptr<Watched>& watched) {
  watched->eventfd.async_wait(asio::posix::stream_descriptor::wait_read,
                              [this, watched, id = watched->client.id](const error_code& error) {
                                // Unwatch may have come between the event and this handler.
                                if (error || !watched_.contains(id)) return;
                                OnEvent(watched);
                              });
}

void SchedulerLoop::OnEvent(const std::shared_ptr<Watched>& watched) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(watched->client.channel->EventFd(), &count, sizeof count);
  const bool asleep = scheduler_.Serve(watched->client);
  DecideSoon();
  if (!watched->wakes.Take(MonotonicNs())) {
    Pause(watched);
  } else if (asleep) {
    AwaitEvent(watched);
  } else {
    ServeAgainSoon(watched);
  }
}

void SchedulerLoop::ServeAgainSoon(const std::shared_ptr<Watched>& watched) {
  asio::post(io_, [this, watched, id = watched->client.id] {
    if (watched_.contains(id)) OnEvent(watched);
  });
}

void SchedulerLoop::Pause(const std::shared_ptr<Watched>& watched) {
  watched->eventfd.release();
  watched->pause.expires_after(kPause);
  watched->pause.async_wait([this, watched, id = watched->client.id](const error_code& error) {
    if (error || !watched_.contains(id)) return;
    watched->eventfd.assign(watched->client.channel->EventFd());
    OnEvent(watched);
  });
}

void SchedulerLoop::DecideSoon() {
  if (decide_posted_ || stopped_ || !scheduler_.HasWork()) return;
  decide_posted_ = true;
  asio::post(io_, [this] {
    decide_posted_ = false;
    DecideNow();
  });
}

void SchedulerLoop::DecideNow() {
  if (stopped_) return;
  scheduler_.Decide();
  ArmLook();
  ArmLease();
}

void SchedulerLoop::ArmLook() {
  const std::uint64_t next = scheduler_.NextLookNs();
  if (next == look_armed_ns_) return;
  look_armed_ns_ = next;
  look_.cancel();
  if (next == policy::kNever) return;
  look_.expires_at(At(next));
  look_.async_wait([this](const error_code& error) {
    if (error) return;
    look_armed_ns_ = policy::kNever;
    DecideNow();
  });
}

void SchedulerLoop::ArmLease() {
  if (lease_armed_ || stopped_ || !scheduler_.RenewLeases()) return;
  lease_armed_ = true;
  lease_.expires_after(std::chrono::milliseconds(lease_ms_) / kRenewalsPerLease);
  lease_.async_wait([this](const error_code& error) {
    lease_armed_ = false;
    if (!error) ArmLease();
  });
}

void SchedulerLoop::Stop() {
  stopped_ = true;
  look_.cancel();
  lease_.cancel();
}

}  // namespace xschedd
