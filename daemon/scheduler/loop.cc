#include "daemon/scheduler/loop.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "common/clock.h"

namespace xschedd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::uint32_t kRenewalsPerLease = 4;
// What takes longer was interrupted: the time was not the client's.
constexpr std::uint64_t kLongestServeNs = 20'000;
constexpr std::uint64_t kLongestDecisionNs = 200'000;
// As many as are decided about together; more would let the first of them wait for the last.
constexpr int kEventsAtOnce = 64;

// libstdc++'s steady clock is CLOCK_MONOTONIC, the clock of MonotonicNs().
std::chrono::steady_clock::time_point At(std::uint64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

int MakeEpoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot make an epoll set; raise LimitNOFILE");
  return fd;
}

}  // namespace

SchedulerLoop::SchedulerLoop(asio::io_context& io, Scheduler& scheduler, std::uint32_t lease_ms)
    : io_(io), scheduler_(scheduler), epoll_(io, MakeEpoll()), look_(io), lease_(io), lease_ms_(lease_ms) {
  scheduler_.SetLease(lease_ms);
  AwaitEvents();
}

void SchedulerLoop::SetLease(std::uint32_t lease_ms) {
  lease_ms_ = lease_ms;
  scheduler_.SetLease(lease_ms);
}

void SchedulerLoop::Watch(Client& client) {
  Watched& watched = *watched_.emplace(client.id, std::make_unique<Watched>(client)).first->second;
  Register(watched);
  // From here on the client must wake us; what it published before is read now, and decided about with all else that is
  // new about it.
  Serve(watched);
}

void SchedulerLoop::Unwatch(std::uint64_t client_id) {
  const auto found = watched_.find(client_id);
  if (found == watched_.end()) return;
  Unregister(*found->second);
  watched_.erase(found);
}

void SchedulerLoop::Register(Watched& watched) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = watched.client.id;
  // It fails for want of kernel memory only; the client is then served as far as others make us look.
  if (::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, watched.client.channel->EventFd(), &event) != 0) {
    SPDLOG_ERROR("cannot watch a client pid={} error=\"{}\"", watched.client.identity.pid, std::strerror(errno));
  }
}

void SchedulerLoop::Unregister(Watched& watched) {
  // A paused one is not in the set; that is all that can be wrong.
  ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, watched.client.channel->EventFd(), nullptr);
}

void SchedulerLoop::AwaitEvents() {
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    OnEvents();
    AwaitEvents();
  });
}

void SchedulerLoop::OnEvents() {
  epoll_event events[kEventsAtOnce];
  const int count = ::epoll_wait(epoll_.native_handle(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id =
        events[i].data.u64;  // a copy: epoll_event is packed, its parts have no address to refer to
    const auto found = watched_.find(id);
    if (found != watched_.end()) Serve(*found->second);
  }
  // At once: what follows in the loop is of less hurry than a gate. Events that are left are looked at next.
  DecideForTold();
}

void SchedulerLoop::Serve(Watched& watched) {
  const std::uint64_t began = MonotonicNs();
  const std::uint64_t changes = scheduler_.Counts().changes;
  const bool asleep = scheduler_.Serve(watched.client);
  const std::uint64_t now = MonotonicNs();
  if (scheduler_.Counts().changes != changes) told_.push_back(watched.client.id);
  speakers_.Note(watched.spoke, now);
  Charge(watched, std::min(now - began, kLongestServeNs), now);
  const bool may_wake = watched.wakes.Take(now);
  watched.is_modest = watched.modest.Take(now);
  if (!may_wake || IsToWait(watched, now)) {
    Pause(watched);
  } else if (!asleep && !watched.again) {
    watched.again = true;
    again_.push_back(watched.client.id);
    if (again_.size() == 1) asio::post(io_, [this] { ServeAgain(); });
  }
}

void SchedulerLoop::ServeAgain() {
  std::vector<std::uint64_t> clients;
  clients.swap(again_);
  for (const std::uint64_t id : clients) {
    const auto found = watched_.find(id);
    if (found == watched_.end()) continue;
    found->second->again = false;
    if (!found->second->paused) Serve(*found->second);
  }
  DecideForTold();
}

void SchedulerLoop::DecideForTold() {
  if (scheduler_.HasWork()) {
    const std::uint64_t began = MonotonicNs();
    DecideNow();
    const std::uint64_t now = MonotonicNs();
    const std::uint64_t cost = std::min(now - began, kLongestDecisionNs) / std::max<std::size_t>(told_.size(), 1);
    for (const std::uint64_t id : told_) {
      const auto found = watched_.find(id);
      if (found == watched_.end()) continue;
      Watched& watched = *found->second;
      all_.Spend(cost, now);
      watched.cpu_share.Spend(static_cast<std::uint64_t>(static_cast<double>(cost) * Scheduler::PartOf(watched.client)),
                              Share(), now);
      if (!watched.paused && IsToWait(watched, now)) Pause(watched);
    }
  }
  told_.clear();
}

void SchedulerLoop::Charge(Watched& watched, std::uint64_t cost_ns, std::uint64_t now_ns) {
  watched.cpu_share.Spend(cost_ns, Share(), now_ns);
  all_.Spend(cost_ns, now_ns);
}

bool SchedulerLoop::IsToWait(Watched& watched, std::uint64_t now_ns) {
  return !watched.is_modest && watched.cpu_share.IsSpent(now_ns) && all_.DebtNs(now_ns) > 0;
}

void SchedulerLoop::Pause(Watched& watched) {
  Unregister(watched);
  watched.paused = true;
  if (watched.pause == nullptr) watched.pause = std::make_unique<asio::steady_timer>(io_);
  watched.pause->expires_after(std::chrono::nanoseconds(watched.cpu_share.PauseNs(MonotonicNs())));
  watched.pause->async_wait([this, id = watched.client.id](const error_code& error) {
    const auto found = watched_.find(id);
    if (error || found == watched_.end()) return;
    found->second->paused = false;
    Register(*found->second);
    // What it published meanwhile need not have been followed by a wake-up.
    Serve(*found->second);
    DecideForTold();
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
  // A timer that goes off too early is cheaper than one that is set with every decision.
  if (next >= look_armed_ns_) return;
  look_armed_ns_ = next;
  look_.expires_at(At(next));
  look_.async_wait([this](const error_code& error) {
    if (error) return;
    look_armed_ns_ = policy::kNever;
    if (scheduler_.NextLookNs() <= MonotonicNs()) return DecideNow();
    ArmLook();
  });
}

void SchedulerLoop::ArmLease() {
  if (lease_armed_ || stopped_) return;
  const bool is_needed = scheduler_.RenewLeases();
  DecideSoon();  // somebody may have fallen silent
  if (!is_needed) return;
  lease_armed_ = true;
  lease_.expires_after(std::chrono::milliseconds(lease_ms_) / kRenewalsPerLease);
  lease_.async_wait([this](const error_code& error) {
    lease_armed_ = false;
    if (!error) ArmLease();
  });
}

void SchedulerLoop::Stop() {
  stopped_ = true;
  epoll_.close();
  look_.cancel();
  lease_.cancel();
}

}  // namespace xschedd
