// The two ends of a ledger (abi.h): the client's LedgerWriter, the daemon's LedgerReader.
// Thread rule: LedgerWriter, any thread (Report takes a lock of the process; counters are atomic). LedgerReader, one
// thread (the daemon's); it trusts nothing that it reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/abi.h"
#include "common/board.h"
#include "common/descriptor_identity.h"
#include "common/result.h"
#include "common/versions.h"

namespace xschedd {

class LedgerWriter {
 public:
  // Fails if the ledger's version or layout is not the one agreed on. `board` is the same session's; writing
  // `daemon_eventfd` wakes the daemon. All stay owned by the caller and must outlive the writer.
  static Result<LedgerWriter*> Open(abi::Ledger* ledger, const abi::Board* board, int daemon_eventfd,
                                    const abi::Layout& layout = abi::Newest());

  // Reports that this client became busy or idle on `slot`, or waits: level, ring record, wake-up if the daemon sleeps.
  // A full ring drops the record; the level, which is the truth, stays right. False: the daemon sleeps and cannot be
  // woken, because the program has closed the eventfd.
  bool Report(std::uint32_t slot, abi::TransitionKind kind, std::uint64_t time_ns);

  // Whether a slot was last reported busy. seq_cst with Report: see Agent::BusyReported.
  bool IsAnyBusy() const { return busy_slots_.load(std::memory_order_seq_cst) != 0; }
  // Reports that this client is alive; a busy one must, at least every abi::kRenewNs. Does nothing if the session's
  // version has no word for it.
  void Renew();
  // Reports what became of the time slice that the board wants on `slot`; `us` counts with kInForce only. Does nothing
  // if the session's version has no word for it.
  void SetSlice(std::uint32_t slot, abi::SliceState state, std::uint32_t us);
  // Publishes the client's own account of device memory on `slot`: bytes allocated now, and allocations refused so far
  // because of a limit. Any thread; where several call it, the last store stays, so they take turns. Wakes nobody. Does
  // nothing if the session's version has no words for it.
  void SetMemory(std::uint32_t slot, std::uint64_t bytes, std::uint64_t refused);
  // Makes the daemon read this ledger if it sleeps. False as in Report.
  bool WakeDaemon();

  // A thread is about to wait on the gate of `slot`, or has stopped waiting. Call AddWaiter before reading the word
  // that the wait depends on.
  void AddWaiter(std::uint32_t slot);
  void RemoveWaiter(std::uint32_t slot);

  // Another daemon now serves the same memory, and is woken through this descriptor.
  void SetEventFd(int daemon_eventfd) {
    const std::lock_guard lock(mutex_);
    wake_ups_.push_back(std::make_unique<WakeUp>(WakeUp{daemon_eventfd, DescriptorIdentity(daemon_eventfd)}));
    // release: whoever sees the pointer sees a complete WakeUp.
    wake_up_.store(wake_ups_.back().get(), std::memory_order_release);
  }

  abi::LedgerDevice& Device(std::uint32_t slot) { return ledger_->devices[slot]; }

 private:
  struct WakeUp {
    int fd;
    DescriptorIdentity identity;
  };
  LedgerWriter(abi::Ledger* ledger, const abi::Board* board, int daemon_eventfd, const abi::Layout& layout)
      : ledger_(ledger),
        board_(board),
        renews_(layout.version >= abi::kRenewalsSince),
        has_slices_(layout.version >= abi::kSlicesSince),
        has_memory_(layout.version >= abi::kMemorySince) {
    SetEventFd(daemon_eventfd);
  }

  abi::Ledger* ledger_;
  const abi::Board* board_;
  const bool renews_;
  const bool has_slices_;
  const bool has_memory_;
  std::atomic<std::uint64_t> busy_slots_{0};  // a bit each
  std::atomic<const WakeUp*> wake_up_{nullptr};
  std::vector<std::unique_ptr<WakeUp>> wake_ups_;  // kept, since a thread may still use an older one
  std::mutex mutex_;                               // one producer at a time
};

// What became of a time slice, as the client claims.
struct SliceSnapshot {
  abi::SliceState state = abi::SliceState::kNotAsked;
  std::uint32_t us = 0;  // 0 unless kInForce
  bool operator==(const SliceSnapshot&) const = default;
};

// A client's own account of device memory, as it claims.
struct MemorySnapshot {
  // No device has as much. A larger value counts as this, so that sums over all clients fit.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;  // allocations refused because of a limit
  bool operator==(const MemorySnapshot&) const = default;
};

// What a ledger says of one device, copied out and checked for plausibility where that is possible. Only the client
// itself can be hurt by a lie in here; see docs/explanation/security-model.md.
struct LedgerSnapshot {
  bool busy = false;
  bool has_waiters = false;
  std::uint32_t in_flight = 0;
  std::uint32_t window_limit = 0;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t gpu_time_ns = 0;
  std::uint64_t held_ns = 0;
  std::uint64_t passthrough = 0;
};

// One value of a ledger, for code that polls many of them. Read returns a copy; the memory itself is never exposed.
template <typename Value>
class LedgerValue {
 public:
  explicit LedgerValue(const std::atomic<Value>& value) : value_(&value) {}
  // relaxed: no other data depends on it.
  Value Read() const { return value_->load(std::memory_order_relaxed); }

 private:
  const std::atomic<Value>* value_;
};
using LedgerCounter = LedgerValue<std::uint64_t>;
using LedgerWord = LedgerValue<std::uint32_t>;

// Returns copies, never addresses: what a caller checks is what it uses, whatever the client writes meanwhile. Each
// function loads each value once.
class LedgerReader {
 public:
  // Initialises the header of a ledger of `layout`'s size. `board` is the same session's: the reader keeps ring_tail
  // and daemon_sleeping there. kInUse: an earlier daemon read it; records published so far are skipped, since the
  // levels have their result.
  LedgerReader(abi::Ledger* ledger, abi::Board* board, const abi::Layout& layout = abi::Newest(),
               MemoryIs memory = MemoryIs::kNew);

  struct Reports {
    bool any = false;     // there were some since the last call: read every slot's level
    bool jumped = false;  // the count of records did what no honest client's does
    bool operator==(const Reports&) const = default;
  };
  // Counts all that was reported so far as read. The records are never read: the levels are the truth, and the ring's
  // page costs the daemon no memory.
  Reports TakeReports();

  abi::Level LevelOf(std::uint32_t slot) const;
  // What a decision needs, without the rest of Read().
  std::uint64_t GpuTimeNs(std::uint32_t slot) const;
  LedgerCounter GpuTimeCounter(std::uint32_t slot) const { return LedgerCounter(ledger_->devices[slot].gpu_time_ns); }
  LedgerCounter LaunchCounter(std::uint32_t slot) const { return LedgerCounter(ledger_->devices[slot].submitted); }
  LedgerWord InFlight(std::uint32_t slot) const { return LedgerWord(ledger_->devices[slot].in_flight); }
  std::uint64_t DeadlineNs(std::uint32_t slot) const;  // 0: none
  // A live client changes it while it is busy; constant in versions without it.
  std::uint64_t Renewals() const;
  bool HasWaiters(std::uint32_t slot) const;
  // For display only. kNotAsked in versions without slices, and for an unknown state.
  SliceSnapshot Slice(std::uint32_t slot) const;
  // Of a version without it: nothing.
  std::optional<MemorySnapshot> Memory(std::uint32_t slot) const;
  LedgerSnapshot Read(std::uint32_t slot) const;

  // Before sleeping: announces it, then returns whether the ring is empty, so that nothing published in between is
  // missed. When it returns false, call TakeReports again instead of sleeping.
  bool PrepareToSleep();
  // After waking: the client need not write the eventfd while we read.
  void Awake();

 private:
  abi::Ledger* ledger_;
  abi::Board* board_;
  bool has_slices_;
  bool has_memory_;
  std::uint64_t tail_ = 0;
  std::uint64_t lost_seen_ = 0;
};

}  // namespace xschedd
