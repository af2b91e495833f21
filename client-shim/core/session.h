// One session's shared memory, as threads that submit see it.
//
// The agent makes a Session and publishes it by an atomic pointer. It is never freed, and its memory is never unmapped:
// a thread on the launch path may read the board at any time until the process ends. A restarted daemon sends the same
// memory, and the Session continues, so a ledger never has two writers. A daemon that sends other memory gets another
// Session. Sessions are reused: one that has ended, and that no thread uses any more (SessionUse), takes over the new
// memory at its own addresses. So two are enough, however often daemons come and go (SessionPool).
//
// Thread rule: any thread, except for what is marked as the agent's.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "client-shim/core/device_reports.h"
#include "client-shim/core/fibonacci_hash.h"
#include "client-shim/core/spin_credit.h"
#include "common/board.h"
#include "common/ledger.h"
#include "common/shared_memory.h"

namespace xschedd::shim {

class Session {
 public:
  // ---- the agent's
  // The memory objects that it is mapped from.
  void SetBacking(int board_fd, int ledger_fd);
  bool IsBackedBy(int board_fd, int ledger_fd) const;
  // A daemon serves it again and is woken by `eventfd`. Its gates bind again if it had ended.
  void Resume(int eventfd);
  // How far the daemon's CLOCK_MONOTONIC is ahead of this process's (clock_offset.h).
  void SetClockOffset(std::int64_t ahead_ns);

  const BoardReader& Board() const { return board_; }
  // The end of the lease by this process's CLOCK_MONOTONIC: flags in a gate bind until then. 0: no gate has had flags
  // yet.
  std::uint64_t LeaseUntilNs() const {
    const std::uint64_t until = board_.LeaseUntilNs();
    // relaxed: see the member.
    return until == 0 ? 0 : until - static_cast<std::uint64_t>(clock_offset_ns_.load(std::memory_order_relaxed));
  }
  LedgerWriter& Ledger() { return *ledger_; }
  TrackerSink* Sink(std::uint32_t slot) { return &sinks_[slot]; }

  // False once the daemon has gone or cannot be reached: no gate of this session binds any more.
  bool IsAlive() const { return is_alive_.load(std::memory_order_acquire); }
  // Releases every thread that waits at one of its gates.
  void End();
  // `action` is called, by any thread, after a device was reported busy. Set once, before the session is first
  // published.
  void OnBusy(std::function<void()> action) {
    if (!on_busy_) on_busy_ = std::move(action);
  }
  // Every thread that waits at one of its gates checks again.
  void WakeWaiters();

 private:
  friend class SessionPool;
  friend class SessionUse;

  class LedgerSink : public TrackerSink {
   public:
    void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) override;
    abi::LedgerDevice& Counters() override { return session->ledger_->Device(slot); }
    bool WantsWaits() const override;
    bool WantsCount() const override;
    Session* session = nullptr;
    std::uint32_t slot = 0;
  };

  Session(const BoardReader& board, std::unique_ptr<LedgerWriter> ledger, abi::Ledger* ledger_memory, int eventfd,
          const abi::Layout& layout);
  static Result<Session*> Make(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout);
  // Moves the mappings to the addresses of this session's memory, which is unmapped. Only while no thread uses the
  // session.
  Result<Session*> Remap(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout);

  const BoardReader board_;
  abi::Ledger* const ledger_memory_;
  std::unique_ptr<LedgerWriter> ledger_;
  std::function<void()> on_busy_;
  const std::size_t board_bytes_;
  const std::size_t ledger_bytes_;
  // The threads that use it, in many counters: one counter would move between the cores of all threads that launch.
  struct alignas(64) Users {
    std::atomic<std::uint32_t> count{0};
  };
  static constexpr unsigned kUsersBits = 6;
  // The calling thread's counter.
  Users& UsersHere() { return users_[FibonacciHash<kUsersBits>(::pthread_self())]; }
  bool IsUsed() const {
    // seq_cst: see SessionUse.
    return std::any_of(users_.begin(), users_.end(), [](const Users& users) { return users.count.load() != 0; });
  }

  std::array<Users, std::size_t{1} << kUsersBits> users_;
  int eventfd_;
  DescriptorIdentity board_object_;
  DescriptorIdentity ledger_object_;
  std::atomic<bool> is_alive_{true};
  std::atomic<std::int64_t> clock_offset_ns_{0};  // relaxed: an old value is as before the daemon's answer came
  std::array<LedgerSink, abi::kMaxDevices> sinks_;
};

// All sessions of the process. Thread rule: the agent's.
class SessionPool {
 public:
  // A session in this memory, which it then owns. `eventfd`: not owned; later sessions may have the same number.
  // `published`: the session that threads may begin to use; may be null.
  Result<Session*> Take(Mapping board, Mapping ledger, int eventfd, const abi::Layout& layout,
                        const Session* published);

 private:
  std::vector<Session*> sessions_;
};

// A thread's use of the published session, whose memory is not replaced meanwhile. Thread rule: made and destroyed by
// one thread.
class SessionUse {
 public:
  explicit SessionUse(const std::atomic<Session*>& published) {
    // seq_cst, all: the agent publishes another session and then checks whether this one is used (IsUsed). Either it
    // sees this thread counted, or this thread sees the other session. A Session is never freed, so it does no harm to
    // be counted in one that has ended.
    for (session_ = published.load(); session_ != nullptr; session_ = published.load()) {
      users_ = &session_->UsersHere().count;
      users_->fetch_add(1);
      if (published.load() == session_) return;
      users_->fetch_sub(1);
    }
  }
  // release: whoever sees the session unused also sees all that this thread did with it.
  ~SessionUse() {
    if (session_ != nullptr) users_->fetch_sub(1, std::memory_order_release);
  }
  SessionUse(SessionUse&& other) noexcept : session_(std::exchange(other.session_, nullptr)), users_(other.users_) {}
  SessionUse& operator=(SessionUse&&) = delete;

  // Null: there is no session.
  Session* Get() const { return session_; }

 private:
  Session* session_;
  std::atomic<std::uint32_t>* users_ = nullptr;  // that counts it; unused without a session
};

// Waits until the gate of `slot` is not held, its lease has ended, or the session has ended. False: `epoch` is no
// longer `seen`, and the caller must check again whether it has to wait. Adds the time waited to the ledger.
// `credit`: of the calling thread, which spins first for as long as that allows; null: it does not.
bool WaitAtGate(Session* session, std::uint32_t slot, const std::atomic<std::uint32_t>& epoch, std::uint32_t seen,
                SpinCredit* credit);
// The calling thread's; null: it should not spin here.
SpinCredit* SpinCreditHere();

}  // namespace xschedd::shim
