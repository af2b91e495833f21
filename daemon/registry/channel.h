// The shared memory of one connection: board, ledger and eventfd, made by the daemon, sent to the client with the
// preamble, used by the scheduler. Thread rule: the daemon's one thread.
//
// A lasting channel can be handed to the next daemon (daemon/state). Its board cannot have F_SEAL_FUTURE_WRITE, which
// would bind the next daemon as well. Instead, the client gets a descriptor that is open for reading only, and the
// file's mode lets only the daemon's own user open it for writing. So it is with every channel before Linux 5.1, which
// has no such seal.
#pragma once

#include <memory>
#include <vector>

#include "common/board.h"
#include "common/ledger.h"
#include "common/shared_memory.h"
#include "common/unique_fd.h"

namespace xschedd {

class Channel {
 public:
  // Fails if no descriptor or memory is left.
  static Result<std::unique_ptr<Channel>> Make(const abi::Layout& layout = abi::Newest());
  static Result<std::unique_ptr<Channel>> MakeLasting(const abi::Layout& layout = abi::Newest());
  // From the three descriptors of a lasting channel of an earlier daemon, in any order. Fails if they are anything
  // else. Board and ledger keep their contents: the gates are as that daemon last wrote them.
  static Result<std::unique_ptr<Channel>> Rebuild(const abi::Layout& layout, std::vector<UniqueFd> descriptors);

  BoardWriter& Board() { return board_; }
  LedgerReader& Ledger() { return ledger_; }
  const LedgerReader& Ledger() const { return ledger_; }
  int EventFd() const { return eventfd_.Get(); }
  bool IsLasting() const { return is_lasting_; }
  // For the preamble, and for the next daemon (StoredBoardFd); closed by ForgetDescriptors once they are sent (the
  // mappings stay).
  int BoardFd() const { return board_view_.IsValid() ? board_view_.Get() : board_fd_.Get(); }
  int LedgerFd() const { return ledger_fd_.Get(); }
  int StoredBoardFd() const { return board_fd_.Get(); }
  void ForgetDescriptors();
  // The layout on which both sides agreed.
  const abi::Layout& Layout() const { return layout_; }

 private:
  Channel(const abi::Layout& layout, bool is_lasting, SharedMemory board, UniqueFd board_view, SharedMemory ledger,
          UniqueFd eventfd, MemoryIs memory);
  static Result<std::unique_ptr<Channel>> Make(const abi::Layout& layout, bool is_lasting);

  const abi::Layout& layout_;
  UniqueFd board_fd_;
  UniqueFd board_view_;  // invalid: the board is sealed
  UniqueFd ledger_fd_;
  UniqueFd eventfd_;
  const bool is_lasting_;
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  BoardWriter board_;
  LedgerReader ledger_;
};

}  // namespace xschedd
