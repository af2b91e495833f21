#include "common/ledger.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace xschedd {

using abi::kRingSize;
using abi::Level;
using abi::TransitionKind;

namespace {

Level LevelAfter(TransitionKind kind) {
  if (kind == TransitionKind::kIdle) return Level::kIdle;
  return kind == TransitionKind::kWaits ? Level::kWaits : Level::kBusy;
}

// A plain store to memory that the other side may be reading, which the compiler never divides.
template <typename Value>
void StoreOnce(Value& to, Value value) {
  std::atomic_ref<Value>(to).store(value, std::memory_order_relaxed);
}

}  // namespace

// ---- client --------------------------------------------------------------------------------------------------------

Result<LedgerWriter*> LedgerWriter::Open(abi::Ledger* ledger, const abi::Board* board, int daemon_eventfd,
                                         const abi::Layout& layout) {
  const abi::LedgerHeader& header = ledger->header;
  if (header.magic != abi::kLedgerMagic || header.version != layout.version ||
      header.layout_hash != layout.layout_hash) {
    return Fail("the daemon's ledger has another layout", "run a client and a daemon of the same release");
  }
  return new LedgerWriter(ledger, board, daemon_eventfd, layout);
}

bool LedgerWriter::Report(std::uint32_t slot, TransitionKind kind, std::uint64_t time_ns) {
  {
    const std::lock_guard lock(mutex_);
    abi::LedgerControl& control = ledger_->control;
    const std::uint64_t bit = std::uint64_t{1} << slot;
    // seq_cst: see IsAnyBusy.
    if (kind == TransitionKind::kIdle) {
      busy_slots_.fetch_and(~bit, std::memory_order_seq_cst);
    } else {
      busy_slots_.fetch_or(bit, std::memory_order_seq_cst);
    }
    // release: whoever sees this level sees the counters written before it.
    ledger_->devices[slot].busy.store(static_cast<std::uint32_t>(LevelAfter(kind)), std::memory_order_release);
    // relaxed: only this process writes the head, under the lock. acquire: slots before the tail were read.
    const std::uint64_t head = control.ring_head.load(std::memory_order_relaxed);
    const std::uint64_t tail = board_->control.ring_tail.load(std::memory_order_acquire);
    if (head - tail >= kRingSize) {
      // release: whoever sees it sees the level. The seq_cst fence orders it before the load of daemon_sleeping.
      control.lost.fetch_add(1, std::memory_order_release);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      abi::Transition& record = ledger_->ring[head % kRingSize];
      // relaxed: the head publishes them.
      StoreOnce(record.time_ns, time_ns);
      StoreOnce(record.kind, static_cast<std::uint32_t>(kind));
      StoreOnce(record.slot, slot);
      // seq_cst: publishes the record, and pairs with daemon_sleeping (Dekker): either we see the daemon asleep and
      // wake it, or it sees this head before it sleeps.
      control.ring_head.store(head + 1, std::memory_order_seq_cst);
    }
  }
  return WakeDaemon();
}

void LedgerWriter::Renew() {
  // relaxed: only a change of the value has a meaning.
  if (renews_) ledger_->control.renewals.fetch_add(1, std::memory_order_relaxed);
}

void LedgerWriter::SetSlice(std::uint32_t slot, abi::SliceState state, std::uint32_t us) {
  // An older version's memory ends before these words.
  if (!has_slices_) return;
  abi::LedgerSlice& slice = ledger_->slices[slot];
  // relaxed: shown only; the two may be seen apart for a moment.
  slice.us.store(state == abi::SliceState::kInForce ? us : 0, std::memory_order_relaxed);
  slice.state.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
}

void LedgerWriter::SetMemory(std::uint32_t slot, std::uint64_t bytes, std::uint64_t refused) {
  // An older version's memory ends before these words.
  if (!has_memory_) return;
  // relaxed: the daemon samples them, and no other data hangs on them.
  ledger_->memory[slot].bytes.store(bytes, std::memory_order_relaxed);
  ledger_->memory[slot].refused.store(refused, std::memory_order_relaxed);
}

bool LedgerWriter::WakeDaemon() {
  if (board_->control.daemon_sleeping.load(std::memory_order_seq_cst) != 1) return true;
  const std::uint64_t one = 1;
  const int saved_errno = errno;  // the host program's launch must not change errno
  // Never writes into a file of the program that reuses this number.
  const WakeUp& wake_up = *wake_up_.load(std::memory_order_acquire);
  const bool can_wake = wake_up.identity.Matches(wake_up.fd);
  // The eventfd is non-blocking; EAGAIN means that a wake-up is already pending.
  if (can_wake) [[maybe_unused]]
    const ssize_t written = ::write(wake_up.fd, &one, sizeof one);
  errno = saved_errno;
  return can_wake;
}

void LedgerWriter::AddWaiter(std::uint32_t slot) {
  // seq_cst: Dekker with the gate word, see BoardWriter::Set.
  ledger_->devices[slot].waiters.fetch_add(1, std::memory_order_seq_cst);
}

void LedgerWriter::RemoveWaiter(std::uint32_t slot) {
  // relaxed: a late view costs the daemon one needless wake-up.
  ledger_->devices[slot].waiters.fetch_sub(1, std::memory_order_relaxed);
}

// ---- daemon --------------------------------------------------------------------------------------------------------

LedgerReader::LedgerReader(abi::Ledger* ledger, abi::Board* board, const abi::Layout& layout, MemoryIs memory)
    : ledger_(ledger),
      board_(board),
      has_slices_(layout.version >= abi::kSlicesSince),
      has_memory_(layout.version >= abi::kMemorySince) {
  ledger_->header.version = layout.version;
  ledger_->header.layout_hash = layout.layout_hash;
  ledger_->header.magic = abi::kLedgerMagic;
  if (memory == MemoryIs::kNew) return;
  tail_ = ledger_->control.ring_head.load(std::memory_order_acquire);
  lost_seen_ = ledger_->control.lost.load(std::memory_order_relaxed);
  // release: the client may reuse all records.
  board_->control.ring_tail.store(tail_, std::memory_order_release);
}

LedgerReader::Reports LedgerReader::TakeReports() {
  // acquire: the levels before them are written. Read once: the client may change them while we work.
  const std::uint64_t head = ledger_->control.ring_head.load(std::memory_order_acquire);
  const std::uint64_t lost = ledger_->control.lost.load(std::memory_order_acquire);
  const std::uint64_t records = head - tail_;
  const Reports reports{records != 0 || lost != lost_seen_, records > kRingSize};
  tail_ = head;
  lost_seen_ = lost;
  // release: the client may reuse all records.
  board_->control.ring_tail.store(tail_, std::memory_order_release);
  return reports;
}

Level LedgerReader::LevelOf(std::uint32_t slot) const {
  // acquire: pairs with the writer's release.
  const std::uint32_t level = ledger_->devices[slot].busy.load(std::memory_order_acquire);
  return level <= static_cast<std::uint32_t>(Level::kWaits) ? static_cast<Level>(level) : Level::kIdle;
}

std::uint64_t LedgerReader::GpuTimeNs(std::uint32_t slot) const {
  // relaxed: no other data depends on it.
  return ledger_->devices[slot].gpu_time_ns.load(std::memory_order_relaxed);
}

std::uint64_t LedgerReader::DeadlineNs(std::uint32_t slot) const {
  // acquire: pairs with the writer's release before the ring record.
  return ledger_->devices[slot].deadline_ns.load(std::memory_order_acquire);
}

std::uint64_t LedgerReader::Renewals() const {
  // relaxed: no other data depends on it.
  return ledger_->control.renewals.load(std::memory_order_relaxed);
}

bool LedgerReader::HasWaiters(std::uint32_t slot) const {
  // seq_cst: second half of the Dekker pair with the gate word, see BoardWriter::Set.
  return ledger_->devices[slot].waiters.load(std::memory_order_seq_cst) != 0;
}

SliceSnapshot LedgerReader::Slice(std::uint32_t slot) const {
  if (!has_slices_) return {};
  // relaxed: shown only.
  const abi::LedgerSlice& slice = ledger_->slices[slot];
  const std::uint32_t state = slice.state.load(std::memory_order_relaxed);
  if (state > static_cast<std::uint32_t>(abi::SliceState::kStalled)) return {};
  const bool in_force = state == static_cast<std::uint32_t>(abi::SliceState::kInForce);
  return {static_cast<abi::SliceState>(state), in_force ? slice.us.load(std::memory_order_relaxed) : 0};
}

std::optional<MemorySnapshot> LedgerReader::Memory(std::uint32_t slot) const {
  if (!has_memory_) return std::nullopt;
  // relaxed: no other data hangs on them. Each is read once, so that check and use are of the same value.
  const abi::LedgerMemory& memory = ledger_->memory[slot];
  return MemorySnapshot{std::min(memory.bytes.load(std::memory_order_relaxed), MemorySnapshot::kMostBytes),
                        memory.refused.load(std::memory_order_relaxed)};
}

LedgerSnapshot LedgerReader::Read(std::uint32_t slot) const {
  const abi::LedgerDevice& device = ledger_->devices[slot];
  LedgerSnapshot snapshot;
  snapshot.busy = LevelOf(slot) != Level::kIdle;
  snapshot.has_waiters = HasWaiters(slot);
  // relaxed: statistics; no decision depends on their order.
  snapshot.in_flight = device.in_flight.load(std::memory_order_relaxed);
  snapshot.window_limit = device.window_limit.load(std::memory_order_relaxed);
  snapshot.submitted = device.submitted.load(std::memory_order_relaxed);
  snapshot.completed = std::min(device.completed.load(std::memory_order_relaxed), snapshot.submitted);
  snapshot.gpu_time_ns = device.gpu_time_ns.load(std::memory_order_relaxed);
  snapshot.held_ns = device.held_ns.load(std::memory_order_relaxed);
  snapshot.passthrough = device.passthrough.load(std::memory_order_relaxed);
  return snapshot;
}

bool LedgerReader::PrepareToSleep() {
  // seq_cst: Dekker with ring_head, see LedgerWriter::Report.
  board_->control.daemon_sleeping.store(1, std::memory_order_seq_cst);
  const std::uint64_t head = ledger_->control.ring_head.load(std::memory_order_seq_cst);
  const bool lost_more = ledger_->control.lost.load(std::memory_order_seq_cst) != lost_seen_;
  return head == tail_ && !lost_more;
}

void LedgerReader::Awake() {
  // relaxed: a client that still sees 1 writes the eventfd once too often.
  board_->control.daemon_sleeping.store(0, std::memory_order_relaxed);
}

}  // namespace xschedd
