#include "common/board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace xschedd {
namespace {

std::uint32_t Flags(const GateSetting& setting) {
  return (setting.held ? abi::kHeld : 0u) | (setting.tracked ? abi::kTracked : 0u) |
         (setting.guarded ? abi::kGuarded : 0u) | (setting.awaited ? abi::kAwaited : 0u) |
         (setting.tells_waits ? abi::kTellsWaits : 0u) | (setting.may_spin ? abi::kMaySpin : 0u) |
         (setting.count_may_wait ? abi::kCountMayWait : 0u);
}

// The word is shared between processes, so no FUTEX_PRIVATE_FLAG. glibc has no wrapper for futex.
long Futex(const abi::Word* word, int operation, std::uint32_t value, const timespec* timeout, std::uint32_t mask) {
  return ::syscall(SYS_futex, word, operation, value, timeout, nullptr, mask);
}

}  // namespace

BoardWriter::BoardWriter(abi::Board* board, const abi::Layout& layout, MemoryIs memory)
    : board_(board),
      has_slices_(layout.version >= abi::kSlicesSince),
      has_memory_(layout.version >= abi::kMemorySince) {
  board_->header.version = layout.version;
  board_->header.layout_hash = layout.layout_hash;
  board_->header.device_slots = abi::kMaxDevices;
  board_->header.magic = abi::kBoardMagic;
  if (memory == MemoryIs::kNew) return;
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const abi::Gate& gate = board_->gates[slot];
    // relaxed: the earlier daemon is dead, and nobody else writes.
    const std::uint32_t word = gate.word.load(std::memory_order_relaxed);
    const GateSetting setting{(word & abi::kHeld) != 0,
                              (word & abi::kTracked) != 0,
                              gate.window_us.load(std::memory_order_relaxed),
                              gate.window_floor.load(std::memory_order_relaxed),
                              (word & abi::kGuarded) != 0,
                              has_slices_ ? gate.slice_us.load(std::memory_order_relaxed) : 0,
                              (word & abi::kAwaited) != 0,
                              (word & abi::kTellsWaits) != 0,
                              (word & abi::kMaySpin) != 0,
                              (word & abi::kCountMayWait) != 0};
    if (setting != GateSetting{}) SettingOf(slot) = setting;
    flagged_ += (word & abi::kFlagMask) != 0 ? 1u : 0u;
  }
  WriteSummary();
}

bool BoardWriter::Set(std::uint32_t slot, GateSetting setting) {
  if (!has_slices_) setting.slice_us = 0;
  if (Get(slot) == setting) return false;
  GateSetting& current = SettingOf(slot);
  const std::uint32_t before = Flags(current);
  const std::uint32_t after = Flags(setting);
  current = setting;

  abi::Gate& gate = board_->gates[slot];
  gate.window_us.store(setting.window_us, std::memory_order_relaxed);
  gate.window_floor.store(setting.window_floor, std::memory_order_relaxed);
  if (has_slices_) gate.slice_us.store(setting.slice_us, std::memory_order_relaxed);
  // relaxed load: only this thread writes the word.
  const std::uint32_t generation = (gate.word.load(std::memory_order_relaxed) >> abi::kGenerationShift) + 1;
  // seq_cst: release for the window above, and the first half of the Dekker pair with LedgerDevice::waiters (a waiter
  // counts itself, then reads the word; we write the word, then read the count: one of the two sees the other).
  gate.word.store((generation << abi::kGenerationShift) | after, std::memory_order_seq_cst);

  const bool was_flagged = flagged_ != 0;
  flagged_ += (after != 0 ? 1u : 0u);
  flagged_ -= (before != 0 ? 1u : 0u);
  if ((flagged_ != 0) != was_flagged) WriteSummary();
  return true;
}

GateSetting& BoardWriter::SettingOf(std::uint32_t slot) {
  if (slot >= settings_.size()) settings_.resize(slot + 1);
  return settings_[slot];
}

void BoardWriter::Prefetch(std::uint32_t slot) const {
  __builtin_prefetch(&board_->gates[slot], 1);
}

bool BoardWriter::SetMemoryLimit(std::uint32_t slot, std::uint64_t bytes) {
  if (!has_memory_) return false;
  abi::Counter& limit = board_->gates[slot].memory_limit;
  // relaxed: only this thread writes it, and no other data hangs on it.
  if (limit.load(std::memory_order_relaxed) == bytes) return false;
  limit.store(bytes, std::memory_order_relaxed);
  return true;
}

std::uint64_t BoardWriter::MemoryLimit(std::uint32_t slot) const {
  // relaxed: as above.
  return has_memory_ ? board_->gates[slot].memory_limit.load(std::memory_order_relaxed) : 0;
}

void BoardWriter::WriteSummary() {
  // The exact OR costs a walk over 64 settings; "some slot has a flag" is all that a reader acts on.
  const std::uint32_t flags = flagged_ != 0 ? abi::kTracked : 0u;
  // release: a client that reads the summary and goes on to the words sees at least what was written before it.
  board_->summary.flags.store(flags, std::memory_order_release);
}

void BoardWriter::RenewLease(std::uint64_t until_ns) {
  // relaxed: a reader that sees an older value only sees an earlier end.
  board_->control.lease_until_ns.store(until_ns, std::memory_order_relaxed);
}

void BoardWriter::WakeGate(std::uint32_t slot) {
  Futex(&board_->gates[slot].word, FUTEX_WAKE, INT_MAX, nullptr, 0);
}

Result<BoardReader> BoardReader::Open(const abi::Board* board, const abi::Layout& layout) {
  const abi::BoardHeader& header = board->header;
  if (header.magic != abi::kBoardMagic || header.version != layout.version ||
      header.layout_hash != layout.layout_hash) {
    return Fail("the daemon's board has another layout", "run a client and a daemon of the same release");
  }
  return BoardReader(board);
}

void BoardReader::Wait(std::uint32_t slot, std::uint32_t seen, std::uint64_t until_ns) const {
  timespec until{};
  until.tv_sec = static_cast<time_t>(until_ns / 1'000'000'000ull);
  until.tv_nsec = static_cast<long>(until_ns % 1'000'000'000ull);
  // FUTEX_WAIT_BITSET takes an absolute time on CLOCK_MONOTONIC. Whatever it returns, the caller reads the word again.
  Futex(&board_->gates[slot].word, FUTEX_WAIT_BITSET, seen, &until, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace xschedd
