// One session's shared memory, as threads that submit see it.
// A Session is made by the agent, published by an atomic pointer and never freed: a thread may be reading its board at
// any time until the process ends. A daemon that brings other memory means a new Session; one that has been restarted
// brings the same, and it goes on: never are there two for one ledger, whose ring has one writer.
// Thread rule: any thread, except for what is marked as the agent's.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "client-shim/core/device_tracker.h"
#include "common/board.h"
#include "common/ledger.h"

namespace xschedd::shim {

class Session {
 public:
  // `board` and `ledger` are the session's for good; `eventfd` is a number that may be another session's later.
  static Result<Session*> Make(const abi::Board* board, abi::Ledger* ledger, int eventfd, const abi::Layout& layout);

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
  std::uint64_t LeaseUntilNs() const;
  LedgerWriter& Ledger() { return *ledger_; }
  TrackerSink* Sink(std::uint32_t slot) { return &sinks_[slot]; }

  // False once the daemon is known to be gone, or cannot be told anything: no gate of this session binds any more.
  bool IsAlive() const { return is_alive_.load(std::memory_order_acquire); }
  // Releases every thread that waits at one of its gates.
  void End();
  // Every thread that waits at one of its gates looks again.
  void WakeWaiters();

 private:
  class LedgerSink : public TrackerSink {
   public:
    void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) override;
    void Publish(const TrackerCounters& counters) override;
    Session* session = nullptr;
    std::uint32_t slot = 0;
  };

  Session(const BoardReader& board, LedgerWriter* ledger);

  BoardReader board_;
  LedgerWriter* ledger_;
  DescriptorIdentity board_memory_;
  DescriptorIdentity ledger_memory_;
  std::atomic<bool> is_alive_{true};
  std::atomic<std::int64_t> clock_offset_ns_{0};  // relaxed: a late view is a view from before the daemon's answer
  std::array<LedgerSink, abi::kMaxDevices> sinks_;
};

// Waits until the gate of `slot` lets the caller through: it is not held, its lease is over, or the session has ended.
// False: `epoch` is not `seen` any more, and the caller must ask again whether it has to wait. Adds the time waited to
// the ledger.
bool WaitAtGate(Session* session, std::uint32_t slot, const std::atomic<std::uint32_t>& epoch, std::uint32_t seen);

}  // namespace xschedd::shim
