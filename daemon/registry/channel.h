// The shared memory of one connection: board, ledger and eventfd, made by the daemon, sent to the client with the
// preamble, used by the scheduler. Thread rule: the daemon's one thread.
#pragma once

#include <memory>

#include "common/board.h"
#include "common/ledger.h"
#include "common/shared_memory.h"
#include "common/unique_fd.h"

namespace xschedd {

class Channel {
 public:
  // Fails when the machine has no descriptor or memory left.
  static Result<std::unique_ptr<Channel>> Make(const abi::Layout& layout = abi::Newest());

  BoardWriter& Board() { return board_; }
  LedgerReader& Ledger() { return ledger_; }
  const LedgerReader& Ledger() const { return ledger_; }
  int EventFd() const { return eventfd_.Get(); }
  // For the preamble; closed by ForgetDescriptors once they are sent (the mappings stay).
  int BoardFd() const { return board_fd_.Get(); }
  int LedgerFd() const { return ledger_fd_.Get(); }
  void ForgetDescriptors();
  // What both sides agreed on.
  const abi::Layout& Layout() const { return layout_; }

 private:
  Channel(const abi::Layout& layout, SharedMemory board, SharedMemory ledger, UniqueFd eventfd);

  const abi::Layout& layout_;
  UniqueFd board_fd_;
  UniqueFd ledger_fd_;
  UniqueFd eventfd_;
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  BoardWriter board_;
  LedgerReader ledger_;
};

}  // namespace xschedd
