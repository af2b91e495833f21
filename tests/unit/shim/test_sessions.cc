// Sessions come and go with daemons; what they take up does not.
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "client-shim/core/session.h"
#include "common/board.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::shim;

namespace {

// What a daemon brings: fresh memory, and a gate that is held where it says so.
struct Brought {
  SharedMemory board = *MakeSharedMemory("board", sizeof(abi::Board), PeerMayWrite::kYes);
  SharedMemory ledger = *MakeSharedMemory("ledger", sizeof(abi::Ledger), PeerMayWrite::kYes);
  BoardWriter writer{static_cast<abi::Board*>(board.mapping.Address())};
  LedgerReader reader{static_cast<abi::Ledger*>(ledger.mapping.Address()),
                      static_cast<abi::Board*>(board.mapping.Address())};

  Session* Take(SessionPool* sessions, const Session* published) const {
    const auto session = sessions->Take(*MapSharedMemory(board.fd.Get(), sizeof(abi::Board), Access::kReadOnly),
                                        *MapSharedMemory(ledger.fd.Get(), sizeof(abi::Ledger), Access::kReadWrite), 7,
                                        abi::Newest(), published);
    REQUIRE(session);
    return *session;
  }
};

// A session is never freed: a thread may be in one. Nor are the pools, so that no sanitizer takes theirs for lost.
SessionPool& NewPool() {
  static auto& pools = *new std::deque<SessionPool>;
  return pools.emplace_back();
}

}  // namespace

TEST_CASE("however many daemons come and go, two sessions are all there are") {
  SessionPool& sessions = NewPool();
  std::atomic<Session*> published{nullptr};
  std::set<const Session*> seen;
  std::set<const abi::Board*> boards;
  for (int daemon = 0; daemon < 40; ++daemon) {
    Brought brought;
    brought.writer.Set(3, GateSetting{true, true, static_cast<std::uint32_t>(daemon), 1});
    Session* const session = brought.Take(&sessions, published.load());
    REQUIRE(session != published.load());
    published.store(session);
    // It is the new daemon's: what is said there is read here, and the other way round.
    CHECK(session->Board().WindowUs(3) == static_cast<std::uint32_t>(daemon));
    CHECK(session->IsAlive());
    session->Ledger().Device(3).submitted.store(static_cast<std::uint64_t>(daemon));
    CHECK(brought.reader.Read(3).submitted == static_cast<std::uint64_t>(daemon));
    seen.insert(session);
    boards.insert(session->Board().Raw());
  }
  CHECK(seen.size() == 2);
  CHECK(boards.size() == 2);
}

TEST_CASE("a refused session makes room for the next") {
  SessionPool& sessions = NewPool();
  std::set<const Session*> seen;
  for (int refusal = 0; refusal < 40; ++refusal)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.size() == 1);
}

TEST_CASE("a session that a thread uses stays what it is") {
  SessionPool& sessions = NewPool();
  std::atomic<Session*> published{nullptr};
  Brought first;
  first.writer.Set(0, GateSetting{true, true, 11, 1});
  published.store(first.Take(&sessions, nullptr));
  SessionUse use(published);
  Session* const used = use.Get();
  REQUIRE(used == published.load());
  auto handed_on = std::make_optional<SessionUse>(std::move(use));
  published.store(nullptr);
  std::set<const Session*> seen;
  for (int daemon = 0; daemon < 10; ++daemon)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.size() == 1);
  CHECK(seen.count(used) == 0);
  CHECK(used->Board().WindowUs(0) == 11);
  handed_on.reset();
  seen.clear();
  for (int daemon = 0; daemon < 10; ++daemon)
    seen.insert(Brought().Take(&sessions, nullptr));
  CHECK(seen.count(used) == 1);
}

TEST_CASE("no session is published: there is nothing to use") {
  const std::atomic<Session*> published{nullptr};
  CHECK(SessionUse(published).Get() == nullptr);
}

TEST_CASE("memory that is not as agreed is refused, and replaces nothing") {
  SessionPool& sessions = NewPool();
  Brought good;
  good.writer.Set(0, GateSetting{true, true, 12, 1});
  Session* const session = good.Take(&sessions, nullptr);
  Brought bad;
  static_cast<abi::Ledger*>(bad.ledger.mapping.Address())->header.version = 0;
  CHECK_FALSE(sessions.Take(*MapSharedMemory(bad.board.fd.Get(), sizeof(abi::Board), Access::kReadOnly),
                            *MapSharedMemory(bad.ledger.fd.Get(), sizeof(abi::Ledger), Access::kReadWrite), 7,
                            abi::Newest(), nullptr));
  CHECK(session->Board().WindowUs(0) == 12);
}
