#include "client-shim/core/agent.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "client-shim/core/client.h"
#include "client-shim/core/clock_offset.h"
#include "client-shim/core/connection.h"
#include "client-shim/core/own_scheduling.h"
#include "client-shim/core/seccomp.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

constexpr std::size_t kStackSize = std::size_t{1024} * 1024;
constexpr std::size_t kMaxOutbox = 4096;
constexpr std::uint64_t kNever = DeviceTracker::kNever;

}  // namespace

bool Agent::Start() {
  // The thread inherits a mask that blocks everything but what the thread itself can cause: a program that answers
  // filtered system calls (SIGSYS) or reports crashes does so for ours as well; blocked, such a signal ends the
  // process. The host's own thread has the mask only for this moment.
  sigset_t most;
  sigset_t before;
  sigfillset(&most);
  for (const int own : {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
    sigdelset(&most, own);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  pthread_sigmask(SIG_SETMASK, &most, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, &Agent::Run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return false;
  pthread_detach(thread);
  return true;
}

void Agent::WaitForFirstAttempt(int timeout_ms) {
  std::unique_lock lock(mutex_);
  first_attempt_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return first_attempt_done_; });
}

// ---- from any thread -----------------------------------------------------------------------------------------------

void Agent::Post(OutgoingMessage message) {
  const std::lock_guard lock(mutex_);
  if (outbox_.size() >= kMaxOutbox) return;
  outbox_.push_back(std::move(message));
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::StartWatching() {
  if (!is_watching_.exchange(true, std::memory_order_seq_cst)) Notify();
}

void Agent::BusyReported() {
  // seq_cst: the agent clears the flag and then asks the ledger once more; the level was set before we look at the
  // flag.
  if (!is_renewing_.load(std::memory_order_seq_cst) && !is_renewing_.exchange(true, std::memory_order_seq_cst))
    Notify();
}

void Agent::DevicesChanged() {
  Notify();
}

void Agent::Deliver(unsigned stream, IncomingMessage message) {
  const std::lock_guard lock(mutex_);
  if (stream != stream_number_) return;
  inbox_.push_back(std::move(message));
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::WaitUntilOutOfRuntime() const {
  // The exit of the process must not wait for long: a call of ours takes microseconds.
  for (int i = 0; i < 50 && is_in_runtime_.load(std::memory_order_seq_cst); ++i) {
    const timespec nap{0, 100'000};
    ::nanosleep(&nap, nullptr);
  }
}

void Agent::Notify() {
  const std::lock_guard lock(mutex_);
  is_notified_ = true;
  wake_.notify_one();
}

// ---- the thread ----------------------------------------------------------------------------------------------------

void* Agent::Run(void* self) {
  // Where a filter forbids what is to come, Connect says so and nothing more is tried.
  if (ForbiddenByFilter().empty()) {
    pthread_setname_np(pthread_self(), "xschedd-agent");
    // Sleeps of tens of microseconds are to be that long; the default slack is another 50.
    prctl(PR_SET_TIMERSLACK, 1000);
    LeaveTheMakersScheduling();
  }
  auto* agent = static_cast<Agent*>(self);
  try {
    agent->InRuntime([&] { agent->client_->GetVendor().adopt_thread(); });
    agent->Loop();
  } catch (...) {
    agent->client_->GiveUp();
    agent->EndSession();
    agent->KeepSlices(MonotonicNs());
  }
  return nullptr;
}

void Agent::Loop() {
  while (!client_->HasGivenUp()) {
    if (stream_ == nullptr && MonotonicNs() >= next_attempt_ns_) Connect();

    std::vector<IncomingMessage> inbox;
    {
      const std::lock_guard lock(mutex_);
      first_attempt_done_ = true;
      inbox.swap(inbox_);
      is_notified_ = false;
    }
    first_attempt_.notify_all();
    for (const IncomingMessage& message : inbox)
      Handle(message);
    std::erase_if(ended_streams_, [](const std::unique_ptr<GrpcStream>& stream) { return stream->IsDone(); });
    SendDevices();
    SendMessages();

    std::uint64_t now = MonotonicNs();
    std::uint64_t until = stream_ == nullptr ? next_attempt_ns_ : kNever;
    if (const std::uint64_t word_until = client_->AwaitsWordUntilNs(); word_until != 0) {
      if (now >= word_until) {
        client_->AwaitWordUntil(0);
      } else {
        until = std::min(until, word_until);
      }
    }
    if (kept_until_ns_ != 0) {
      if (now >= kept_until_ns_) EndSession();
      until = std::min(until, kept_until_ns_ != 0 ? kept_until_ns_ : kNever);
    }
    if (is_watching_.load(std::memory_order_relaxed)) {
      has_activity_ = true;
      std::uint64_t look_ns = Watch(now);
      if (look_ns == kNever) {
        is_watching_.store(false, std::memory_order_seq_cst);
        // Once more: see WorkSubmitted.
        look_ns = Watch(now);
        if (look_ns != kNever) is_watching_.store(true, std::memory_order_seq_cst);
      }
      until = std::min(until, look_ns);
    }
    until = std::min({until, RenewBusy(now), KeepSlices(now)});
    if (stream_ != nullptr && activity_interval_ns_ != 0 && has_activity_) {
      if (now >= next_activity_ns_) SendActivity(now);
      if (has_activity_) until = std::min(until, next_activity_ns_);
    }
    if (stream_ != nullptr && !session_->IsAlive() && !client_->HasGivenUp()) {
      stream_->Cancel();
      DropSession(EndMessage{"the daemon cannot be woken", false});
      continue;
    }
    Sleep(until);
  }
  EndSession();
  KeepSlices(MonotonicNs());
  // The daemon must not go on waiting for a client that it cannot hold.
  if (stream_ != nullptr) stream_->Cancel();
}

std::uint64_t Agent::Watch(std::uint64_t now_ns) {
  std::uint64_t look_ns = kNever;
  InRuntime([&] { look_ns = client_->TickTrackers(now_ns); });
  return look_ns;
}

bool Agent::IsExiting() const {
  return client_->IsExiting();
}

void Agent::Sleep(std::uint64_t until_ns) {
  std::unique_lock lock(mutex_);
  if (is_notified_) return;
  if (until_ns == kNever) {
    wake_.wait(lock, [&] { return is_notified_; });
    return;
  }
  const std::uint64_t now = MonotonicNs();
  if (until_ns > now) wake_.wait_for(lock, std::chrono::nanoseconds(until_ns - now));
}

}  // namespace xschedd::shim
