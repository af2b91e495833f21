#include "client-shim/core/session.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// The longest sleep at a gate without checking the session and the passthrough rules: a wake-up by WakeWaiters can come
// between the check and the sleep.
constexpr std::uint64_t kLongestGateSleepNs = 10'000'000;

// A spinning thread reads the gate about every microsecond, and gives way to other threads every 16.
constexpr int kPausesAtGate = 20;
constexpr std::uint32_t kSpinsToYield = 16;

void SpinAtGate(std::uint32_t number) {
  for (int i = 0; i < kPausesAtGate; ++i)
    __builtin_ia32_pause();
  if (number % kSpinsToYield == 0) ::sched_yield();
}

// 0: unknown.
std::uint64_t ThreadCpuNs() {
  timespec used{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

Result<Session*> SessionPool::Take(Mapping board, Mapping ledger, int eventfd, const abi::Layout& layout,
                                   const Session* published) {
  for (Session* session : sessions_) {
    const bool is_free = session != published && !session->IsUsed();
    const bool fits = session->board_bytes_ == layout.board_bytes && session->ledger_bytes_ == layout.ledger_bytes;
    if (is_free && fits) return session->Remap(&board, &ledger, eventfd, layout);
  }
  Result<Session*> session = Session::Make(&board, &ledger, eventfd, layout);
  if (session) sessions_.push_back(*session);
  return session;
}

Result<Session*> Session::Make(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout) {
  const auto* const board_memory = static_cast<const abi::Board*>(board->Address());
  const Result<BoardReader> reader = BoardReader::Open(board_memory, layout);
  if (!reader) return tl::unexpected(reader.error());
  const Result<LedgerWriter*> writer =
      LedgerWriter::Open(static_cast<abi::Ledger*>(ledger->Address()), board_memory, eventfd, layout);
  if (!writer) return tl::unexpected(writer.error());
  auto* const session = new Session(*reader, std::unique_ptr<LedgerWriter>(*writer),
                                    static_cast<abi::Ledger*>(ledger->Address()), eventfd, layout);
  board->Leak();
  ledger->Leak();
  return session;
}

Result<Session*> Session::Remap(Mapping* board, Mapping* ledger, int eventfd, const abi::Layout& layout) {
  const auto* const board_memory = static_cast<const abi::Board*>(board->Address());
  // Checked before anything is replaced.
  if (const Result<BoardReader> reader = BoardReader::Open(board_memory, layout); !reader) {
    return tl::unexpected(reader.error());
  }
  Result<LedgerWriter*> writer =
      LedgerWriter::Open(static_cast<abi::Ledger*>(ledger->Address()), board_memory, eventfd, layout);
  if (!writer) return tl::unexpected(writer.error());
  delete *writer;
  board_object_ = ledger_object_ = DescriptorIdentity();
  // Atomic for a thread that still reads there: it finds either the old memory or the new one.
  const auto move = [](Mapping* from, const void* to) {
    const bool is_moved = ::mremap(from->Address(), from->Size(), from->Size(), MREMAP_MAYMOVE | MREMAP_FIXED,
                                   const_cast<void*>(to)) != MAP_FAILED;
    if (is_moved) from->Leak();
    return is_moved;
  };
  if (!move(ledger, ledger_memory_) || !move(board, board_.Raw())) {
    return Fail("cannot map the daemon's shared memory: " + std::string(std::strerror(errno)),
                "raise the limit of memory (ulimit -v)");
  }
  writer = LedgerWriter::Open(ledger_memory_, board_.Raw(), eventfd, layout);
  if (!writer) return tl::unexpected(writer.error());
  ledger_.reset(*writer);
  eventfd_ = eventfd;
  clock_offset_ns_.store(0, std::memory_order_relaxed);
  is_alive_.store(true, std::memory_order_release);
  return this;
}

Session::Session(const BoardReader& board, std::unique_ptr<LedgerWriter> ledger, abi::Ledger* ledger_memory,
                 int eventfd, const abi::Layout& layout)
    : board_(board),
      ledger_memory_(ledger_memory),
      ledger_(std::move(ledger)),
      board_bytes_(layout.board_bytes),
      ledger_bytes_(layout.ledger_bytes),
      eventfd_(eventfd) {
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    sinks_[slot].session = this;
    sinks_[slot].slot = slot;
  }
}

void Session::SetBacking(int board_fd, int ledger_fd) {
  board_object_ = DescriptorIdentity(board_fd);
  ledger_object_ = DescriptorIdentity(ledger_fd);
}

bool Session::IsBackedBy(int board_fd, int ledger_fd) const {
  return board_object_.Matches(board_fd) && ledger_object_.Matches(ledger_fd);
}

void Session::Resume(int eventfd) {
  // All eventfds have the same identity, so one under the same number needs no update.
  if (eventfd != eventfd_) ledger_->SetEventFd(eventfd);
  eventfd_ = eventfd;
  is_alive_.store(true, std::memory_order_release);
}

void Session::SetClockOffset(std::int64_t ahead_ns) {
  clock_offset_ns_.store(ahead_ns, std::memory_order_relaxed);
}

void Session::End() {
  is_alive_.store(false, std::memory_order_release);
  WakeWaiters();
}

void Session::WakeWaiters() {
  for (const abi::Gate& gate : board_.Raw()->gates) {
    // A wake-up needs no write access to the word, and the board is mapped read-only.
    ::syscall(SYS_futex, &gate.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

void Session::LedgerSink::Report(abi::TransitionKind kind, std::uint64_t deadline_ns) {
  if (!session->IsAlive()) return;
  // Converted to the daemon's clock. relaxed: see the member.
  if (deadline_ns != 0) {
    deadline_ns += static_cast<std::uint64_t>(session->clock_offset_ns_.load(std::memory_order_relaxed));
  }
  // release, before the record: abi.h.
  session->ledger_->Device(slot).deadline_ns.store(deadline_ns, std::memory_order_release);
  if (!session->ledger_->Report(slot, kind, MonotonicNs())) session->End();
  if (kind == abi::TransitionKind::kBusy && session->on_busy_) session->on_busy_();
}

bool Session::LedgerSink::WantsWaits() const {
  return session->IsAlive() && (session->board_.Word(slot) & abi::kTellsWaits) != 0;
}

bool Session::LedgerSink::WantsCount() const {
  return session->IsAlive() &&
         (session->board_.Word(slot) & (abi::kTellsWaits | abi::kCountMayWait)) == abi::kTellsWaits;
}

SpinCredit* SpinCreditHere() {
  static const bool may_spin = std::thread::hardware_concurrency() >= SpinCredit::kFewestProcessors;
  thread_local constinit SpinCredit credit;
  return may_spin ? &credit : nullptr;
}

bool WaitAtGate(Session* session, std::uint32_t slot, const std::atomic<std::uint32_t>& epoch, std::uint32_t seen,
                SpinCredit* credit) {
  const BoardReader& board = session->Board();
  if ((board.Word(slot) & abi::kHeld) == 0) return true;
  bool is_same = true;
  const std::uint64_t began = MonotonicNs();
  std::uint64_t now = began;
  const std::uint64_t spin_ns = credit == nullptr ? 0 : credit->Begin(ThreadCpuNs());
  std::uint32_t spins = 0;
  // Counted before the word is read: either this thread sees the gate open, or the daemon sees it waiting (abi.h).
  session->Ledger().AddWaiter(slot);
  while (session->IsAlive()) {
    const std::uint32_t word = board.Word(slot);
    const std::uint64_t lease = session->LeaseUntilNs();
    if ((word & abi::kHeld) == 0 || now >= lease) break;
    // acquire: with the new epoch come the new rules (Passthrough::Configure).
    is_same = epoch.load(std::memory_order_acquire) == seen;
    if (!is_same) break;
    if ((word & abi::kMaySpin) != 0 && now - began < spin_ns) {
      SpinAtGate(++spins);
    } else {
      board.Wait(slot, word, std::min(lease, now + kLongestGateSleepNs));
    }
    now = MonotonicNs();
  }
  session->Ledger().RemoveWaiter(slot);
  if (credit != nullptr) credit->End(ThreadCpuNs());
  // relaxed: a statistic.
  session->Ledger().Device(slot).held_ns.fetch_add(now - began, std::memory_order_relaxed);
  return is_same;
}

}  // namespace xschedd::shim
