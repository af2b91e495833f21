// What a daemon brings for a session of a client, in a test's process. Thread rule: the test's thread.
#pragma once

#include <deque>

#include "client-shim/core/session.h"
#include "common/board.h"
#include "tests/catch.h"

namespace xschedd::shim {

// A daemon's part: new memory, with a held gate if requested.
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

// A session is never freed, because a thread may use it; nor are the pools, so that no sanitizer reports a leak.
inline SessionPool& NewPool() {
  static auto& pools = *new std::deque<SessionPool>;
  return pools.emplace_back();
}

}  // namespace xschedd::shim
