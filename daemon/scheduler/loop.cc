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
// Longer work was interrupted; the excess is not charged to the client.
constexpr std::uint64_t kMaxServeNs = 20'000;
constexpr std::uint64_t kMaxDecisionNs = 200'000;
// Events that share a decision; with more, the first would wait too long for the last.
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
    : io_(io), scheduler_(scheduler), epoll_(io, MakeEpoll()), due_timer_(io), lease_timer_(io), lease_ms_(lease_ms) {
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
  // From now on the client wakes us. What it published before is read now; the decision comes with the client's own.
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
  // Fails only if the kernel has no memory; the client's wake-ups are lost then.
  if (::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, watched.client.channel->EventFd(), &event) != 0) {
    SPDLOG_ERROR("cannot watch a client: its wake-ups are lost pid={} error=\"{}\"", watched.client.identity.pid,
                 std::strerror(errno));
  }
}

void SchedulerLoop::Unregister(Watched& watched) {
  // The only possible error: a paused client is not in the set.
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
  std::uint64_t since_ns = 0;  // when a decision became needed; 0: none is
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[i].data.u64;  // a copy: fields of the packed epoll_event cannot be referred to
    const auto found = watched_.find(id);
    if (found != watched_.end()) Serve(*found->second);
    if (!scheduler_.HasWork()) continue;
    const std::uint64_t now = MonotonicNs();
    if (since_ns == 0) since_ns = now;
    if (now - since_ns < usual_decision_ns_) continue;
    DecideForReported();
    since_ns = 0;
  }
  // At once: nothing in the loop is as urgent as a gate. Remaining events come next.
  DecideForReported();
}

void SchedulerLoop::Serve(Watched& watched) {
  const std::uint64_t began = MonotonicNs();
  const std::uint64_t changes = scheduler_.Counts().changes;
  const bool is_drained = scheduler_.ReadActivity(watched.client);
  const std::uint64_t now = MonotonicNs();
  if (scheduler_.Counts().changes != changes) reported_.push_back(watched.client.id);
  reporters_.Note(watched.last_report_period, now);
  Charge(watched, std::min(now - began, kMaxServeNs), now);
  const bool may_wake = watched.wakes.Take(now);
  watched.is_modest = watched.modest.Take(now);
  if (!may_wake || MustPause(watched, now)) {
    Pause(watched);
  } else if (!is_drained && !watched.is_unread) {
    watched.is_unread = true;
    unread_.push_back(watched.client.id);
    if (unread_.size() == 1) asio::post(io_, [this] { ServeUnread(); });
  }
}

void SchedulerLoop::ServeUnread() {
  std::vector<std::uint64_t> clients;
  clients.swap(unread_);
  for (const std::uint64_t id : clients) {
    const auto found = watched_.find(id);
    if (found == watched_.end()) continue;
    found->second->is_unread = false;
    if (!found->second->paused) Serve(*found->second);
  }
  DecideForReported();
}

void SchedulerLoop::DecideForReported() {
  if (scheduler_.HasWork()) {
    const std::uint64_t began = MonotonicNs();
    DecideNow();
    const std::uint64_t now = MonotonicNs();
    usual_decision_ns_ += std::min(now - began, kMaxDecisionNs) / 8 - usual_decision_ns_ / 8;
    const std::uint64_t cost = std::min(now - began, kMaxDecisionNs) / std::max<std::size_t>(reported_.size(), 1);
    for (const std::uint64_t id : reported_) {
      const auto found = watched_.find(id);
      if (found == watched_.end()) continue;
      Watched& watched = *found->second;
      all_.Spend(cost, now);
      watched.cpu_share.Spend(
          static_cast<std::uint64_t>(static_cast<double>(cost) * Scheduler::DecisionShareOf(watched.client)), Share(),
          now);
      if (!watched.paused && MustPause(watched, now)) Pause(watched);
    }
  } else {
    ArmDueTimer();  // for what may wait
  }
  reported_.clear();
}

void SchedulerLoop::Charge(Watched& watched, std::uint64_t cost_ns, std::uint64_t now_ns) {
  watched.cpu_share.Spend(cost_ns, Share(), now_ns);
  all_.Spend(cost_ns, now_ns);
}

bool SchedulerLoop::MustPause(Watched& watched, std::uint64_t now_ns) {
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
    // What it published meanwhile caused no wake-up.
    Serve(*found->second);
    DecideForReported();
  });
}

void SchedulerLoop::DecideSoon() {
  if (decide_posted_ || stopped_) return;
  if (!scheduler_.HasWork()) return ArmDueTimer();
  decide_posted_ = true;
  asio::post(io_, [this] {
    decide_posted_ = false;
    DecideNow();
  });
}

void SchedulerLoop::DecideNow() {
  if (stopped_) return;
  scheduler_.Decide();
  ArmDueTimer();
  ArmLeaseTimer();
}

void SchedulerLoop::ArmDueTimer() {
  const std::uint64_t next = scheduler_.NextDueNs();
  // A timer that fires early is cheaper than one set again with every decision.
  if (next >= due_armed_ns_) return;
  due_armed_ns_ = next;
  due_timer_.expires_at(At(next));
  due_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    due_armed_ns_ = policy::kNever;
    if (scheduler_.NextDueNs() <= MonotonicNs()) return DecideNow();
    ArmDueTimer();
  });
}

void SchedulerLoop::ArmLeaseTimer() {
  if (lease_armed_ || stopped_) return;
  const bool is_needed = scheduler_.RenewLeases();
  DecideSoon();  // a client may have fallen silent
  if (!is_needed) return;
  lease_armed_ = true;
  lease_timer_.expires_after(std::chrono::milliseconds(lease_ms_) / kRenewalsPerLease);
  lease_timer_.async_wait([this](const error_code& error) {
    lease_armed_ = false;
    if (!error) ArmLeaseTimer();
  });
}

void SchedulerLoop::Stop() {
  stopped_ = true;
  epoll_.close();
  due_timer_.cancel();
  lease_timer_.cancel();
}

}  // namespace xschedd
