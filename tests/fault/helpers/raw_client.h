// A client that needs little time itself: the preamble of common/, and the session's HTTP/2 frames written without
// gRPC, so that 100,000 of them measure the daemon and not themselves. It reads what the daemon sends only until the
// first answer. Thread rule: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/board.h"
#include "common/ledger.h"
#include "common/shared_memory.h"
#include "common/unique_fd.h"

namespace xschedd::fault {

class RawClient {
 public:
  // Connects and says hello; null if the daemon does not answer or refuses.
  static std::unique_ptr<RawClient> Connect(const std::string& runtime_dir);

  // Opens a session and attaches to a device as slot 0, without waiting for an answer.
  bool Open(int priority, const std::string& pci_address);
  // Waits for the daemon's welcome.
  bool AwaitWelcome();

  const BoardReader& Board() const { return *board_; }
  LedgerWriter& Ledger() { return *ledger_; }
  abi::Ledger* Raw() { return static_cast<abi::Ledger*>(ledger_mapping_.Address()); }
  int Socket() const { return socket_.Get(); }
  // The daemon's answer instead of its welcome, as far as it can be read.
  const std::string& Said() const { return said_; }

 private:
  RawClient() = default;

  UniqueFd socket_;
  UniqueFd eventfd_;
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  std::optional<BoardReader> board_;
  std::unique_ptr<LedgerWriter> ledger_;
  std::string token_;
  std::string said_;
};

}  // namespace xschedd::fault
