// The two ends of a board (abi.h): the daemon's BoardWriter, the client's BoardReader.
// Thread rule: BoardWriter, one thread (the daemon's scheduler); BoardReader, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/abi.h"
#include "common/result.h"
#include "common/versions.h"

namespace xschedd {

// For the daemon's ends of board and ledger: fresh memory, or the memory of a client that an earlier daemon served.
enum class MemoryIs { kNew, kInUse };

// What the daemon wants of a client on one device.
struct GateSetting {
  bool held = false;
  bool tracked = false;
  std::uint32_t window_us = 0;     // µs of GPU time in flight; 0: no limit
  std::uint32_t window_floor = 0;  // launches always allowed in flight
  bool guarded = false;            // open although a more important client is busy
  std::uint32_t slice_us = 0;      // time slice, µs; 0: the driver's own. Not written for a client of an older version
  bool awaited = false;            // it must report soon that it is idle
  bool tells_waits = false;        // it must report when its host waits
  bool may_spin = false;           // its held threads may spin for a while before they sleep
  bool count_may_wait = false;     // with tells_waits: nobody needs to know now how many launches there were
  bool operator==(const GateSetting&) const = default;
};

class BoardWriter {
 public:
  // `board`, of `layout`'s size, stays owned by the caller and must outlive the writer. Initialises the header. kNew:
  // all gates are open and untracked. kInUse: the gates stay as an earlier daemon left them, until Set changes them.
  explicit BoardWriter(abi::Board* board, const abi::Layout& layout = abi::Newest(), MemoryIs memory = MemoryIs::kNew);

  // Writes the gate of `slot` if it differs from what was last written; returns whether it wrote. The caller then wakes
  // waiters (WakeGate) if the ledger says that there are any.
  bool Set(std::uint32_t slot, GateSetting setting);
  // Before Set, for many boards: asks for the gate's cache line, which its client reads. Set stores the word seq_cst,
  // and so waits for its line before the next one is asked for.
  void Prefetch(std::uint32_t slot) const;
  GateSetting Get(std::uint32_t slot) const { return slot < settings_.size() ? settings_[slot] : GateSetting{}; }
  // Writes the most bytes of device memory that the client may have, 0: no limit, if it differs; returns whether it
  // wrote. It applies whatever the gate's word says. False for a client of an older version, which cannot know it.
  bool SetMemoryLimit(std::uint32_t slot, std::uint64_t bytes);
  std::uint64_t MemoryLimit(std::uint32_t slot) const;

  // Lets words with flags bind until `until_ns` (CLOCK_MONOTONIC).
  void RenewLease(std::uint64_t until_ns);
  // Wakes every thread that waits on the gate of `slot`. One system call.
  void WakeGate(std::uint32_t slot);

 private:
  void WriteSummary();
  GateSetting& SettingOf(std::uint32_t slot);

  abi::Board* board_;
  bool has_slices_;
  bool has_memory_;
  std::vector<GateSetting> settings_;  // as last written, up to the highest slot that was: few have many
  std::uint32_t flagged_ = 0;          // how many slots have a flag set
};

class BoardReader {
 public:
  // Fails if the board's version or layout is not the one agreed on. `board` must stay mapped while any reader lives.
  static Result<BoardReader> Open(const abi::Board* board, const abi::Layout& layout = abi::Newest());

  const abi::Word* SummaryWord() const { return &board_->summary.flags; }
  // The raw word: flags and generation.
  std::uint32_t Word(std::uint32_t slot) const {
    // acquire: the window written before this word is seen, too.
    return board_->gates[slot].word.load(std::memory_order_acquire);
  }
  std::uint32_t WindowUs(std::uint32_t slot) const {
    return board_->gates[slot].window_us.load(std::memory_order_relaxed);
  }
  std::uint32_t WindowFloor(std::uint32_t slot) const {
    return board_->gates[slot].window_floor.load(std::memory_order_relaxed);
  }
  // 0: none wanted, or the board's version has no slices. Applies only while the word has a flag.
  std::uint32_t SliceUs(std::uint32_t slot) const {
    return board_->header.version < abi::kSlicesSince ? 0
                                                      : board_->gates[slot].slice_us.load(std::memory_order_relaxed);
  }
  // Most bytes of device memory; 0: no limit. Of a version without it always 0. It counts whatever the word says.
  std::uint64_t MemoryLimit(std::uint32_t slot) const {
    return board_->header.version < abi::kMemorySince
               ? 0
               : board_->gates[slot].memory_limit.load(std::memory_order_relaxed);
  }
  std::uint64_t LeaseUntilNs() const { return board_->control.lease_until_ns.load(std::memory_order_relaxed); }

  // Sleeps until the word of `slot` is not `seen` any more, a wake-up, a signal, or `until_ns` (CLOCK_MONOTONIC).
  // Returns at once if it differs already. May return early; the caller reads the word again.
  void Wait(std::uint32_t slot, std::uint32_t seen, std::uint64_t until_ns) const;

  const abi::Board* Raw() const { return board_; }

 private:
  explicit BoardReader(const abi::Board* board) : board_(board) {}
  const abi::Board* board_;
};

}  // namespace xschedd
