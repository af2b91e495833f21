// One session's shared memory, as threads that submit see it.
// The agent makes a Session and publishes it by an atomic pointer. It is never freed, nor its memory unmapped: a thread
// on the launch path may read its board at any time until the process ends. A daemon that brings other memory means
// another Session; a restarted one brings the same memory, and the Session continues: there are never two for one
// ledger, whose ring has one writer. A session that is over and that no thread uses any more (SessionUse) takes over
// the memory of the next but one, so that there are two, however often daemons come and go (SessionPool). Thread rule:
// any thread, except for what is marked as the agent's.
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
#include "common/board.h"
#include "common/ledger.h"
#include "common/shared_memory.h"

namespace xschedd::shim {

class Session {
 public:
  // ---- the agent's
  // Which memory objects it lives in.
  void SetMemory(int board_fd, int ledger_fd);
  bool IsIn(int board_fd, int ledger_fd) const;
  // A daemon serves it again and is woken by `eventfd`. Its gates bind again if it had ended.
  void Resume(int eventfd);

  // The daemon's CLOCK_MONOTONIC is so far ahead of this process's (clock_offset.h).
  void SetClockOffset(std::int64_t ahead_ns);

  const BoardReader& Board() const { return board_; }
  // The end of the lease by this process's CLOCK_MONOTONIC: flags in a gate bind until then.
  std::uint64_t LeaseUntilNs() const {
    const std::uint64_t until = board_.LeaseUntilNs();
    // relaxed: as said where it is. 0: no gate has had flags yet.
    return until == 0 ? 0 : until - static_cast<std::uint64_t>(clock_offset_ns_.load(std::memory_order_relaxed));
  }
  LedgerWriter& Ledger() { return *ledger_; }
  TrackerSink* Sink(std::uint32_t slot) { return &sinks_[slot]; }

  // False once the daemon is known to be gone, or cannot be told anything: no gate of this session binds any more.
  bool IsAlive() const { return is_alive_.load(std::memory_order_acquire); }
  // Releases every thread that waits at one of its gates.
  void End();
  // `action` is called, by any thread, when a device was reported busy. Once, before the session is first published.
  void OnBusy(std::function<void()> action) {
    if (!on_busy_) on_busy_ = std::move(action);
  }
  // Every thread that waits at one of its gates looks again.
  void WakeWaiters();

 private:
  friend class SessionPool;
  friend class SessionUse;

  class LedgerSink : public TrackerSink {
   public:
    void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) override;
    abi::LedgerDevice& Counters() override { return session->ledger_->Device(slot); }
    bool WantsWaits() const override;
    Session* session = nullptr;
    std::uint32_t slot = 0;
  };

  Session(const BoardReader& board, std::unique_ptr<LedgerWriter> ledger, abi::Ledger* ledger_memory, int eventfd,
          const abi::Layout& layout);
  static Result<Session*> Make(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout);
  // What is mapped there comes to the addresses of this session's memory, which is given back. Nobody uses it.
  Result<Session*> MoveIn(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout);

  const BoardReader board_;
  abi::Ledger* const ledger_memory_;
  std::unique_ptr<LedgerWriter> ledger_;
  std::function<void()> on_busy_;
  const std::size_t board_bytes_;
  const std::size_t ledger_bytes_;
  // Threads that use it, each counted in one of many: a count for all would wander between the cores of those that
  // launch.
  struct alignas(64) Users {
    std::atomic<std::uint32_t> count{0};
  };
  static constexpr unsigned kUsersBits = 6;
  // The calling thread's.
  Users& UsersHere() {
    return users_[static_cast<std::size_t>(::pthread_self() * 0x9e3779b97f4a7c15ull >> (64 - kUsersBits))];
  }
  bool IsUsed() const {
    // seq_cst: see SessionUse.
    return std::any_of(users_.begin(), users_.end(), [](const Users& users) { return users.count.load() != 0; });
  }

  std::array<Users, std::size_t{1} << kUsersBits> users_;
  int eventfd_;
  DescriptorIdentity board_object_;
  DescriptorIdentity ledger_object_;
  std::atomic<bool> is_alive_{true};
  std::atomic<std::int64_t> clock_offset_ns_{0};  // relaxed: a late view is a view from before the daemon's answer
  std::array<LedgerSink, abi::kMaxDevices> sinks_;
};

// The agent's: all sessions that there have been.
class SessionPool {
 public:
  // A session in this memory, which is the session's from then on. `eventfd` is a number that may be another session's
  // later. `published`: the session that threads may begin to use; may be null.
  Result<Session*> Take(Mapping board, Mapping ledger, int eventfd, const abi::Layout& layout,
                        const Session* published);

 private:
  std::vector<Session*> sessions_;
};

// A thread's use of the session that is published: it stays what it is for so long. Null: there is none. Thread rule:
// begins and ends on one thread.
class SessionUse {
 public:
  explicit SessionUse(const std::atomic<Session*>& published) {
    // seq_cst, all: the agent publishes another and then looks whether this one is used. Either it sees us here, or we
    // see the other. A Session is never freed, so counting in one that is over does no harm.
    for (session_ = published.load(); session_ != nullptr; session_ = published.load()) {
      session_->UsersHere().count.fetch_add(1);
      if (published.load() == session_) return;
      session_->UsersHere().count.fetch_sub(1);
    }
  }
  // release: what this thread did with it is over for who sees it unused.
  ~SessionUse() {
    if (session_ != nullptr) session_->UsersHere().count.fetch_sub(1, std::memory_order_release);
  }
  SessionUse(SessionUse&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  SessionUse& operator=(SessionUse&&) = delete;

  Session* Get() const { return session_; }

 private:
  Session* session_;
};

// Waits until the gate of `slot` lets the caller through: it is not held, its lease is over, or the session has ended.
// False: `epoch` is not `seen` any more, and the caller must ask again whether it has to wait. Adds the time waited to
// the ledger.
bool WaitAtGate(Session* session, std::uint32_t slot, const std::atomic<std::uint32_t>& epoch, std::uint32_t seen);

}  // namespace xschedd::shim
