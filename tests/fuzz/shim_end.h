// A client's end of a connection to the daemon, without gRPC: the preamble, then the ledger to write into.
// Thread rule: the target's thread.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>

#include "common/board.h"
#include "common/clock.h"
#include "common/ledger.h"
#include "common/preamble_client.h"
#include "common/shared_memory.h"
#include "tests/fuzz/input.h"

namespace xschedd::fuzz {

class ShimEnd {
 public:
  // Connects and returns the daemon's end, which contains a shim's hello or a plain client's first bytes.
  UniqueFd Connect(bool is_shim) {
    int ends[2];
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    socket_.Reset(ends[0]);
    const PreambleHello hello = MakeHello();
    const void* first = is_shim ? static_cast<const void*>(&hello) : "PRI * HTTP/2.0\r\n\r\n";
    FUZZ_CHECK(::send(socket_.Get(), first, 16, MSG_NOSIGNAL) == 16);
    return UniqueFd(ends[1]);
  }

  // Call after the daemon has handled the hello.
  void TakeWelcome() {
    char byte = 0;
    if (::recv(socket_.Get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) return;
    // The repeated hello is for the daemon's gRPC, which does not exist here.
    std::optional<Welcomed> welcomed = SayHello(socket_.Get(), MakeHello(), 100);
    if (!welcomed || welcomed->welcome.status != PreambleStatus::kOk) return;
    token_.assign(welcomed->welcome.token, sizeof welcomed->welcome.token);
    eventfd_ = std::move(welcomed->descriptors[2]);
    board_ = MapSharedMemory(welcomed->descriptors[0].Get(), sizeof(abi::Board), Access::kReadOnly).value();
    ledger_ = MapSharedMemory(welcomed->descriptors[1].Get(), sizeof(abi::Ledger), Access::kReadWrite).value();
    writer_.reset(LedgerWriter::Open(static_cast<abi::Ledger*>(ledger_.Address()),
                                     static_cast<const abi::Board*>(board_.Address()), eventfd_.Get())
                      .value());
  }

  const std::string& Token() const { return token_; }

  // Writes anywhere in the ledger, and wakes the daemon.
  void Write(std::uint32_t word, std::uint32_t value) {
    if (writer_ == nullptr) return;
    static_cast<abi::Word*>(ledger_.Address())[word % (sizeof(abi::Ledger) / sizeof(abi::Word))] = value;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(eventfd_.Get(), &one, sizeof one);
  }

  void Report(std::uint32_t slot, bool busy) {
    if (writer_ == nullptr) return;
    (void)writer_->Report(slot, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, MonotonicNs());
  }

  void Reset() { *this = ShimEnd(); }

 private:
  UniqueFd socket_;
  UniqueFd eventfd_;
  Mapping board_;
  Mapping ledger_;
  std::unique_ptr<LedgerWriter> writer_;
  std::string token_;
};

}  // namespace xschedd::fuzz
