// A second daemon takes over board and ledger: what it trusts in them, and that the client notices nothing.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "common/board.h"
#include "common/ledger.h"
#include "common/unique_fd.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

struct Memory {
  std::unique_ptr<abi::Board> board = std::make_unique<abi::Board>();
  std::unique_ptr<abi::Ledger> ledger = std::make_unique<abi::Ledger>();
  UniqueFd eventfd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  BoardWriter writer{board.get()};
  LedgerReader reader{ledger.get(), board.get()};
  std::unique_ptr<LedgerWriter> client{LedgerWriter::Open(ledger.get(), board.get(), eventfd.Get()).value()};
};

bool WasWoken(const UniqueFd& eventfd) {
  std::uint64_t count = 0;
  return ::read(eventfd.Get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

}  // namespace

TEST_CASE("a board that is taken over does not change until a decision changes it") {
  Memory memory;
  memory.writer.Set(1, {true, true, 500, 2, false, 200});
  memory.writer.Set(2, {false, true, 20'000, 1});
  memory.writer.SetMemoryLimit(1, 1000);
  const std::uint32_t held = memory.board->gates[1].word;
  BoardWriter next(memory.board.get(), abi::Newest(), MemoryIs::kInUse);
  CHECK(memory.board->gates[1].word == held);
  CHECK(memory.board->summary.flags != 0);
  CHECK(memory.board->gates[1].memory_limit == 1000);
  CHECK(!next.SetMemoryLimit(1, 1000));
  CHECK(!next.Set(1, {true, true, 500, 2, false, 200}));
  CHECK(next.Set(1, {}));
  CHECK((memory.board->gates[1].word >> abi::kGenerationShift) == (held >> abi::kGenerationShift) + 1);
  CHECK(memory.board->summary.flags != 0);
  CHECK(next.Set(2, {}));
  CHECK(memory.board->summary.flags == 0);

  SECTION("a summary that the dead daemon had not updated is corrected") {
    memory.board->gates[3].word = abi::kTracked;
    const BoardWriter third(memory.board.get(), abi::Newest(), MemoryIs::kInUse);
    CHECK(memory.board->summary.flags != 0);
    memory.board->gates[3].word = 0;
    const BoardWriter fourth(memory.board.get(), abi::Newest(), MemoryIs::kInUse);
    CHECK(memory.board->summary.flags == 0);
  }
}

TEST_CASE("of a ledger that is taken over, only the levels count") {
  Memory memory;
  for (std::uint32_t i = 0; i < abi::kRingSize + 10; ++i)
    memory.client->Report(4, i % 2 == 0 ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, i);
  memory.client->Report(5, abi::TransitionKind::kBusy, 1);
  CHECK(memory.ledger->control.lost > 0);
  SECTION("from an honest client") {}
  SECTION("from a hostile client") {
    memory.ledger->control.ring_head = ~std::uint64_t{0} - 1;
    memory.ledger->control.lost = ~std::uint64_t{0};
    std::memset(memory.ledger->ring, 0xff, sizeof memory.ledger->ring);
    std::memset(static_cast<void*>(&memory.ledger->header), 0xff, sizeof memory.ledger->header);
  }
  LedgerReader next(memory.ledger.get(), memory.board.get(), abi::Newest(), MemoryIs::kInUse);
  const auto reports = next.TakeReports();
  CHECK(!reports.any);
  CHECK(!reports.jumped);
  CHECK(next.PrepareToSleep());
  CHECK(next.LevelOf(5) == abi::Level::kBusy);
  CHECK(next.LevelOf(4) == abi::Level::kIdle);
  // Later transitions are read.
  WasWoken(memory.eventfd);
  CHECK(memory.client->Report(5, abi::TransitionKind::kIdle, 2));
  CHECK(WasWoken(memory.eventfd));
  next.Awake();
  CHECK(next.TakeReports().any);
  CHECK(next.LevelOf(5) == abi::Level::kIdle);
}

TEST_CASE("a client wakes the daemon through the descriptor that it got last") {
  Memory memory;
  const UniqueFd other(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  REQUIRE(memory.reader.PrepareToSleep());
  memory.client->SetEventFd(other.Get());
  CHECK(memory.client->Report(0, abi::TransitionKind::kBusy, 1));
  CHECK(WasWoken(other));
  CHECK(!WasWoken(memory.eventfd));
}
