// Board and ledger, read and written from both sides, with honest and hostile writers.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "common/board.h"
#include "common/clock.h"
#include "common/ledger.h"
#include "common/unique_fd.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

struct Channel {
  // Page-like memory, zeroed, as a fresh memfd is.
  std::unique_ptr<abi::Board> board_memory = std::make_unique<abi::Board>();
  std::unique_ptr<abi::Ledger> ledger_memory = std::make_unique<abi::Ledger>();
  abi::Board* board = board_memory.get();
  abi::Ledger* ledger = ledger_memory.get();
  UniqueFd eventfd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  BoardWriter board_writer{board};
  LedgerReader ledger_reader{ledger, board};
  std::unique_ptr<LedgerWriter> ledger_writer{LedgerWriter::Open(ledger, board, eventfd.Get()).value()};
  BoardReader board_reader{BoardReader::Open(board).value()};

  bool WasWoken() const {
    std::uint64_t count = 0;
    return ::read(eventfd.Get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count);
  }
  bool Takes(const LedgerReader::Reports& reports) { return ledger_reader.TakeReports() == reports; }
};

constexpr auto kBusy = abi::TransitionKind::kBusy;
constexpr auto kIdle = abi::TransitionKind::kIdle;
constexpr auto kWaits = abi::TransitionKind::kWaits;
constexpr auto kBusyLevel = abi::Level::kBusy;
constexpr LedgerReader::Reports kNone{false, false};
constexpr LedgerReader::Reports kSome{true, false};
constexpr LedgerReader::Reports kJump{true, true};

}  // namespace

TEST_CASE("a fresh board is open and untracked") {
  Channel channel;
  CHECK(channel.board_reader.SummaryWord()->load() == 0);
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot)
    CHECK(channel.board_reader.Word(slot) == 0);
}

TEST_CASE("a gate is written when it changes, with a new generation") {
  Channel channel;
  CHECK(!channel.board_writer.Set(3, {}));
  CHECK(channel.board_writer.Set(3, {true, true, 500, 2}));
  const std::uint32_t held = channel.board_reader.Word(3);
  CHECK((held & abi::kFlagMask) == (abi::kHeld | abi::kTracked));
  CHECK(channel.board_reader.WindowUs(3) == 500);
  CHECK(channel.board_reader.WindowFloor(3) == 2);
  CHECK(channel.board_reader.SummaryWord()->load() != 0);
  CHECK(!channel.board_writer.Set(3, {true, true, 500, 2}));
  CHECK(channel.board_reader.Word(3) == held);
  CHECK(channel.board_writer.Set(3, {true, true, 250, 1}));
  CHECK(channel.board_reader.Word(3) != held);
  channel.board_writer.Set(4, {false, true, 0, 0});
  channel.board_writer.Set(3, {});
  CHECK(channel.board_reader.SummaryWord()->load() != 0);
  channel.board_writer.Set(4, {});
  CHECK(channel.board_reader.SummaryWord()->load() == 0);
  CHECK((channel.board_reader.Word(3) & abi::kFlagMask) == 0);
}

TEST_CASE("the board requests a time slice, and the ledger reports its state") {
  Channel channel;
  CHECK(channel.board_writer.Set(3, {false, true, 500, 2, false, 200}));
  const std::uint32_t word = channel.board_reader.Word(3);
  CHECK(channel.board_reader.SliceUs(3) == 200);
  CHECK(channel.board_reader.SliceUs(4) == 0);
  CHECK(!channel.board_writer.Set(3, {false, true, 500, 2, false, 200}));
  CHECK(channel.board_writer.Set(3, {false, true, 500, 2, false, 20'000}));
  CHECK(channel.board_reader.SliceUs(3) == 20'000);
  CHECK(channel.board_reader.Word(3) != word);

  using enum abi::SliceState;
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kNotAsked, 0});
  channel.ledger_writer->SetSlice(3, kInForce, 200);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kInForce, 200});
  CHECK(channel.ledger_reader.Slice(4) == SliceSnapshot{kNotAsked, 0});
  channel.ledger_writer->SetSlice(3, kRefused, 200);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kRefused, 0});
  channel.ledger_writer->SetSlice(3, kStalled, 200);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kStalled, 0});
  channel.ledger_writer->SetSlice(3, kNotHere, 0);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kNotHere, 0});
  // Values that no honest client writes.
  channel.ledger->slices[3].us.store(7);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kNotHere, 0});
  channel.ledger->slices[3].state.store(static_cast<std::uint32_t>(kStalled) + 1);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kNotAsked, 0});
  channel.ledger->slices[3].state.store(~0u);
  CHECK(channel.ledger_reader.Slice(3) == SliceSnapshot{kNotAsked, 0});
}

TEST_CASE("with a peer of an older version, time slices are not used, and nothing is written beyond its memory") {
  for (const abi::Layout& layout : abi::Spoken()) {
    if (layout.version >= abi::kSlicesSince) continue;
    INFO("version " << layout.version);
    abi::Board board{};
    abi::Ledger ledger{};
    // These values must stay: the memory of that version does not contain these fields.
    for (abi::LedgerSlice& slice : ledger.slices)
      slice.state.store(1), slice.us.store(77);
    board.gates[3].slice_us.store(66);
    BoardWriter board_writer(&board, layout);
    LedgerReader ledger_reader(&ledger, &board, layout);
    const UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const std::unique_ptr<LedgerWriter> ledger_writer(
        LedgerWriter::Open(&ledger, &board, eventfd.Get(), layout).value());
    const BoardReader board_reader = BoardReader::Open(&board, layout).value();
    CHECK(board_writer.Set(3, {false, true, 500, 2, false, 200}));
    CHECK(!board_writer.Set(3, {false, true, 500, 2, false, 20'000}));
    CHECK(board.gates[3].slice_us.load() == 66);
    CHECK(board_reader.SliceUs(3) == 0);
    ledger_writer->SetSlice(3, abi::SliceState::kRefused, 200);
    CHECK(ledger.slices[3].state.load() == 1);
    CHECK(ledger.slices[3].us.load() == 77);
    CHECK(ledger_reader.Slice(3) == SliceSnapshot{});
  }
}

TEST_CASE("the board says a limit of memory whatever the gate is, and the ledger reports the client's account") {
  Channel channel;
  const std::uint32_t word = channel.board_reader.Word(3);
  CHECK(channel.board_reader.MemoryLimit(3) == 0);
  CHECK(channel.board_writer.SetMemoryLimit(3, 24ull << 30));
  CHECK(!channel.board_writer.SetMemoryLimit(3, 24ull << 30));
  CHECK(channel.board_reader.MemoryLimit(3) == 24ull << 30);
  CHECK(channel.board_reader.MemoryLimit(4) == 0);
  CHECK(channel.board_reader.Word(3) == word);  // nobody need wake
  channel.board_writer.Set(3, {true, true, 500, 2});
  channel.board_writer.Set(3, {});
  CHECK(channel.board_reader.MemoryLimit(3) == 24ull << 30);
  CHECK(channel.board_writer.SetMemoryLimit(3, 0));
  CHECK(channel.board_reader.MemoryLimit(3) == 0);

  CHECK(channel.ledger_reader.Memory(3) == MemorySnapshot{});
  channel.ledger_writer->SetMemory(3, 5'000'000'000, 2);
  CHECK(channel.ledger_reader.Memory(3) == MemorySnapshot{5'000'000'000, 2});
  CHECK(channel.ledger_reader.Memory(4) == MemorySnapshot{});
  // Values that no honest client writes: no sum of them may overflow.
  channel.ledger->memory[3].bytes.store(~std::uint64_t{0});
  channel.ledger->memory[3].refused.store(~std::uint64_t{0});
  CHECK(channel.ledger_reader.Memory(3) == MemorySnapshot{MemorySnapshot::kMostBytes, ~std::uint64_t{0}});
}

TEST_CASE("with a peer of an older version, limits of memory are not used, and nothing is written beyond its memory") {
  for (const abi::Layout& layout : abi::Spoken()) {
    if (layout.version >= abi::kMemorySince) continue;
    INFO("version " << layout.version);
    abi::Board board{};
    abi::Ledger ledger{};
    // These values must stay: the memory of that version does not contain these fields.
    board.gates[3].memory_limit.store(66);
    ledger.memory[3].bytes.store(77);
    ledger.memory[3].refused.store(88);
    BoardWriter board_writer(&board, layout);
    const LedgerReader ledger_reader(&ledger, &board, layout);
    const UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const std::unique_ptr<LedgerWriter> ledger_writer(
        LedgerWriter::Open(&ledger, &board, eventfd.Get(), layout).value());
    CHECK(!board_writer.SetMemoryLimit(3, 1000));
    CHECK(board.gates[3].memory_limit.load() == 66);
    CHECK(BoardReader::Open(&board, layout).value().MemoryLimit(3) == 0);
    ledger_writer->SetMemory(3, 1000, 1);
    CHECK(ledger.memory[3].bytes.load() == 77);
    CHECK(ledger.memory[3].refused.load() == 88);
    CHECK(!ledger_reader.Memory(3));
  }
}

TEST_CASE("a waiter wakes when its gate opens, or when the lease ends") {
  Channel channel;
  channel.board_writer.Set(0, {true, true, 0, 0});
  SECTION("opened") {
    std::atomic<bool> done = false;
    std::thread waiter([&] {
      channel.ledger_writer->AddWaiter(0);
      for (std::uint32_t word; ((word = channel.board_reader.Word(0)) & abi::kHeld) != 0;) {
        channel.board_reader.Wait(0, word, MonotonicNs() + 60'000'000'000ull);
      }
      channel.ledger_writer->RemoveWaiter(0);
      done = true;
    });
    while (!channel.ledger_reader.HasWaiters(0))
      std::this_thread::yield();
    channel.board_writer.Set(0, {false, true, 0, 0});
    if (channel.ledger_reader.HasWaiters(0)) channel.board_writer.WakeGate(0);
    waiter.join();
    CHECK(done);
  }
  SECTION("the lease ends") {
    channel.board_writer.RenewLease(MonotonicNs() + 1'000'000);
    const std::uint64_t until = channel.board_reader.LeaseUntilNs();
    while (MonotonicNs() < until)
      channel.board_reader.Wait(0, channel.board_reader.Word(0), until);
    CHECK((channel.board_reader.Word(0) & abi::kHeld) != 0);
  }
  SECTION("an old word does not wait") {
    channel.board_reader.Wait(0, 0, MonotonicNs() + 60'000'000'000ull);
  }
}

TEST_CASE("transitions reach the daemon, which is woken only while it sleeps") {
  Channel channel;
  channel.ledger_writer->Report(5, kBusy, 1);
  CHECK(!channel.WasWoken());
  CHECK(channel.ledger_reader.LevelOf(5) == kBusyLevel);
  CHECK(!channel.ledger_reader.PrepareToSleep());  // there is something to read
  channel.ledger_reader.Awake();
  CHECK(channel.Takes(kSome));
  CHECK(channel.Takes(kNone));
  CHECK(channel.ledger_reader.PrepareToSleep());
  channel.ledger_writer->Report(5, kIdle, 2);
  CHECK(channel.WasWoken());
  channel.ledger_reader.Awake();
  CHECK(channel.Takes(kSome));
  CHECK(channel.ledger_reader.LevelOf(5) == abi::Level::kIdle);
}

TEST_CASE("a client that waits is busy, and is busy or idle afterwards") {
  Channel channel;
  for (const auto& [kind, level] :
       {std::pair{kBusy, kBusyLevel}, std::pair{kWaits, abi::Level::kWaits}, std::pair{kBusy, kBusyLevel},
        std::pair{kWaits, abi::Level::kWaits}, std::pair{kIdle, abi::Level::kIdle}}) {
    channel.ledger_writer->Report(5, kind, 1);
    CHECK(channel.Takes(kSome));
    CHECK(channel.ledger_reader.LevelOf(5) == level);
    CHECK(channel.ledger_reader.Read(5).busy == (level != abi::Level::kIdle));
    CHECK(channel.ledger_writer->IsAnyBusy() == (level != abi::Level::kIdle));
  }
}

TEST_CASE("a full ring loses records, not levels") {
  Channel channel;
  for (std::uint32_t i = 0; i < abi::kRingSize + 10; ++i)
    channel.ledger_writer->Report(i % 2, i % 4 < 2 ? kBusy : kIdle, i);
  channel.ledger_writer->Report(0, kIdle, 0);
  CHECK(channel.ledger->control.lost == 11);
  CHECK(!channel.ledger_reader.PrepareToSleep());
  CHECK(channel.Takes(kSome));
  CHECK(channel.ledger_reader.LevelOf(0) == abi::Level::kIdle);
  CHECK(channel.ledger_reader.LevelOf(1) == kBusyLevel);
  CHECK(channel.ledger_reader.PrepareToSleep());
  // There is room again.
  channel.ledger_writer->Report(0, kBusy, 0);
  CHECK(channel.ledger->control.lost == 11);
  CHECK(channel.Takes(kSome));
}

TEST_CASE("a record that was lost after the last look is a report") {
  Channel channel;
  channel.ledger->control.lost = 1;
  CHECK(!channel.ledger_reader.PrepareToSleep());
  CHECK(channel.Takes(kSome));
  CHECK(channel.ledger_reader.PrepareToSleep());
  CHECK(channel.Takes(kNone));
}

TEST_CASE("hostile: heads, records and levels that no honest client writes") {
  Channel channel;
  SECTION("a head far ahead") {
    channel.ledger->control.ring_head = 1'000'000;
    CHECK(channel.Takes(kJump));
    CHECK(channel.ledger_reader.PrepareToSleep());
    CHECK(channel.Takes(kNone));
  }
  SECTION("a head that goes back, also across zero") {
    channel.ledger_writer->Report(0, kBusy, 0);
    CHECK(channel.Takes(kSome));
    channel.ledger->control.ring_head = 0;
    CHECK(channel.Takes(kJump));
    channel.ledger->control.ring_head = ~0ull;
    CHECK(channel.Takes(kJump));
    channel.ledger->control.ring_head = 5;  // six records after ~0
    CHECK(channel.Takes(kSome));
  }
  SECTION("what records say does not matter") {
    std::memset(static_cast<void*>(channel.ledger->ring), 0xff, sizeof channel.ledger->ring);
    channel.ledger->control.ring_head = abi::kRingSize;
    CHECK(channel.Takes(kSome));
  }
  SECTION("an unknown level is idle, and no more is completed than was submitted") {
    channel.ledger->devices[0].busy = 3;
    CHECK(channel.ledger_reader.LevelOf(0) == abi::Level::kIdle);
    channel.ledger->devices[0].submitted = 5;
    channel.ledger->devices[0].completed = ~0ull;
    CHECK(channel.ledger_reader.Read(0).completed == 5);
  }
}

TEST_CASE("hostile: a writer that scribbles all the time") {
  Channel channel;
  std::atomic<bool> stop = false;
  std::thread scribbler([&] {
    std::uint64_t x = 88172645463325252ull;
    while (!stop.load(std::memory_order_relaxed)) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      channel.ledger->control.ring_head.store(x % 3 == 0 ? x : x % 5000, std::memory_order_relaxed);
      channel.ledger->control.lost.store(x, std::memory_order_relaxed);
      abi::Transition& record = channel.ledger->ring[x % abi::kRingSize];
      std::atomic_ref(record.kind).store(x % 2 == 0 ? 1 : 0xffffffff, std::memory_order_relaxed);
      std::atomic_ref(record.slot)
          .store(x % 4 < 2 ? abi::kMaxDevices - 1 : static_cast<std::uint32_t>(x >> 32), std::memory_order_relaxed);
      channel.ledger->devices[1].submitted.store(x % 5, std::memory_order_relaxed);
      channel.ledger->devices[1].completed.store(x % 7, std::memory_order_relaxed);
      channel.ledger->devices[x % abi::kMaxDevices].busy.store(static_cast<std::uint32_t>(x),
                                                               std::memory_order_relaxed);
      channel.ledger->devices[x % abi::kMaxDevices].waiters.store(static_cast<std::uint32_t>(x >> 32),
                                                                  std::memory_order_relaxed);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const LedgerReader::Reports reports = channel.ledger_reader.TakeReports();
    REQUIRE((reports.any || !reports.jumped));
    REQUIRE(channel.ledger_reader.LevelOf(1) <= abi::Level::kWaits);
    channel.ledger_reader.PrepareToSleep();
    const LedgerSnapshot snapshot = channel.ledger_reader.Read(1);
    REQUIRE(snapshot.completed <= snapshot.submitted);
  }
  stop = true;
  scribbler.join();
}

TEST_CASE("every transition of an honest writer is seen, however the two race") {
  Channel channel;
  constexpr std::uint32_t kReports = 20'001;  // ends busy
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < kReports; ++i)
      channel.ledger_writer->Report(1, i % 2 == 0 ? kBusy : kIdle, i);
  });
  // As the daemon does: it sleeps only if PrepareToSleep allows it, and then only a wake-up ends the sleep.
  bool busy = false;
  bool writer_done = false;
  while (!writer_done || !busy) {
    channel.ledger_reader.Awake();
    if (channel.ledger_reader.TakeReports().any) busy = channel.ledger_reader.LevelOf(1) == kBusyLevel;
    if (!channel.ledger_reader.PrepareToSleep()) continue;
    while (!channel.WasWoken()) {
      if (channel.ledger->control.ring_head.load() + channel.ledger->control.lost.load() == kReports) {
        writer_done = true;
        break;
      }
      std::this_thread::yield();
    }
    if (writer_done && !busy) {
      // The last report may have come before the sleep, together with a wake-up.
      channel.ledger_reader.TakeReports();
      busy = channel.ledger_reader.LevelOf(1) == kBusyLevel;
    }
  }
  writer.join();
  CHECK(channel.ledger_reader.LevelOf(1) == kBusyLevel);
}

TEST_CASE("another version or layout is refused by both readers") {
  Channel channel;
  for (int i = 0; i < 3; ++i) {
    abi::BoardHeader& board = channel.board->header;
    abi::LedgerHeader& ledger = channel.ledger->header;
    board = {abi::kBoardMagic, abi::kVersion, abi::kLayoutHash, abi::kMaxDevices};
    ledger = {abi::kLedgerMagic, abi::kVersion, abi::kLayoutHash};
    if (i == 0) board.magic = ledger.magic = 1;
    if (i == 1) board.version = ledger.version = abi::kVersion + 1;
    if (i == 2) board.layout_hash = ledger.layout_hash = 1;
    CHECK(BoardReader::Open(channel.board).error().remedy == "run a client and a daemon of the same release");
    CHECK(!LedgerWriter::Open(channel.ledger, channel.board, -1));
  }
}
