#include "client-shim/core/agent.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client-shim/core/client.h"
#include "client-shim/core/own_scheduling.h"
#include "client-shim/core/seccomp.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

constexpr std::size_t kStackSize = std::size_t{1024} * 1024;

}  // namespace

bool Agent::Start() {
  // The thread inherits a mask that blocks all signals but those that a thread causes itself. A program that answers
  // filtered system calls (SIGSYS) or reports crashes does so for this thread, too; blocked, such a signal would end
  // the process. The calling thread has the mask only during the call.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
    sigdelset(&blocked, own);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
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

void Agent::HintsChanged() {
  const std::lock_guard lock(mutex_);
  hints_changed_ = true;
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::QueueChanged(std::uint64_t queue) {
  const std::lock_guard lock(mutex_);
  changed_queues_.insert(queue);
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::StartWatching() {
  if (!is_watching_.exchange(true, std::memory_order_seq_cst)) Notify();
}

void Agent::BusyReported() {
  // seq_cst: the agent clears the flag and then reads the ledger's levels once more (RenewBusy); the caller set the
  // level before it reads the flag. One of the two sees the other.
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
  // A call of the runtime takes microseconds. The exit of the process must not wait for one that hangs.
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
  // Under a filter these calls may end the process. Connect reports it.
  if (ForbiddenByFilter().empty()) {
    pthread_setname_np(pthread_self(), "xschedd-agent");
    // The default slack, 50 µs, is longer than the agent's shortest sleeps.
    prctl(PR_SET_TIMERSLACK, 1000);
    ResetInheritedScheduling();
  }
  auto* agent = static_cast<Agent*>(self);
  try {
    agent->InRuntime([&] { agent->client_->GetVendor().adopt_thread(); });
    agent->Loop();
  } catch (...) {
    agent->client_->GiveUp();
    agent->EndSession();
    agent->KeepSlices(MonotonicNs());
    agent->KeepQueuePriority(MonotonicNs());
  }
  return nullptr;
}

void Agent::Loop() {
  while (!client_->HasGivenUp()) {
    if (stream_ == nullptr && MonotonicNs() >= next_attempt_ns_) Connect();
    HandleInbox();
    std::erase_if(ended_streams_, [](const std::unique_ptr<GrpcStream>& stream) { return stream->IsDone(); });
    SendDevices();
    SendChanges();
    const std::uint64_t until = DoDue(MonotonicNs());
    if (stream_ != nullptr && !session_->IsAlive() && !client_->HasGivenUp()) {
      stream_->Cancel();
      DropSession(EndMessage{"the daemon cannot be woken", false});
      continue;
    }
    Sleep(until);
  }
  EndSession();
  KeepSlices(MonotonicNs());
  KeepQueuePriority(MonotonicNs());
  // The daemon must not go on waiting for a client that it cannot hold.
  if (stream_ != nullptr) stream_->Cancel();
}

void Agent::HandleInbox() {
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
}

// ---- what is due ---------------------------------------------------------------------------------------------------

std::uint64_t Agent::DoDue(std::uint64_t now_ns) {
  std::uint64_t until_ns = stream_ == nullptr ? next_attempt_ns_ : kNever;
  until_ns = std::min(until_ns, EndDecisionWait(now_ns));
  until_ns = std::min(until_ns, EndKeptSession(now_ns));
  until_ns = std::min(until_ns, WatchTrackers(now_ns));
  until_ns = std::min(until_ns, RenewBusy(now_ns));
  until_ns = std::min(until_ns, KeepSlices(now_ns));
  KeepQueuePriority(now_ns);
  return std::min(until_ns, SendDueActivity(now_ns));
}

std::uint64_t Agent::EndDecisionWait(std::uint64_t now_ns) {
  const std::uint64_t until_ns = client_->AwaitsDecisionUntilNs();
  if (until_ns == 0) return kNever;
  if (now_ns < until_ns) return until_ns;
  client_->AwaitDecisionUntil(0);
  return kNever;
}

std::uint64_t Agent::EndKeptSession(std::uint64_t now_ns) {
  if (session_kept_until_ns_ == 0) return kNever;
  if (now_ns < session_kept_until_ns_) return session_kept_until_ns_;
  EndSession();
  return kNever;
}

std::uint64_t Agent::WatchTrackers(std::uint64_t now_ns) {
  // relaxed: WorkSubmitted notifies the agent when it sets the flag.
  if (!is_watching_.load(std::memory_order_relaxed)) return kNever;
  has_activity_ = true;
  std::uint64_t next_ns = TickTrackers(now_ns);
  if (next_ns != kNever) return next_ns;
  is_watching_.store(false, std::memory_order_seq_cst);
  // Once more, for work that was submitted before the flag was cleared: see WorkSubmitted.
  next_ns = TickTrackers(now_ns);
  if (next_ns != kNever) is_watching_.store(true, std::memory_order_seq_cst);
  return next_ns;
}

std::uint64_t Agent::SendDueActivity(std::uint64_t now_ns) {
  if (stream_ == nullptr || activity_interval_ns_ == 0 || !has_activity_) return kNever;
  if (now_ns >= next_activity_ns_) SendActivity(now_ns);
  return has_activity_ ? next_activity_ns_ : kNever;
}

std::uint64_t Agent::TickTrackers(std::uint64_t now_ns) {
  std::uint64_t next_ns = kNever;
  InRuntime([&] { next_ns = client_->TickTrackers(now_ns); });
  return next_ns;
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
