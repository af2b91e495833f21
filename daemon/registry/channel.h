// The shared memory of one connection: board, ledger and eventfd, made by the daemon, sent to the client with the
// preamble, used by the scheduler. Thread rule: the daemon's one thread.
//
// A lasting one can be handed to the next daemon (daemon/state). Its board cannot bear F_SEAL_FUTURE_WRITE, which would
// bind the next daemon as well: the client gets a descriptor that is open for reading only, and the object's mode lets
// nobody but the daemon's own user open it for more.
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
  // Fails when the machine has no descriptor or memory left.
  static Result<std::unique_ptr<Channel>> Make();
  static Result<std::unique_ptr<Channel>> MakeLasting();
  // From the three descriptors of an earlier daemon's lasting channel, in any order. Fails if they are anything else.
  // Board and ledger are as they were: the gates say what that daemon wrote last.
  static Result<std::unique_ptr<Channel>> Rebuild(std::vector<UniqueFd> descriptors);

  BoardWriter& Board() { return board_; }
  LedgerReader& Ledger() { return ledger_; }
  const LedgerReader& Ledger() const { return ledger_; }
  int EventFd() const { return eventfd_.Get(); }
  bool IsLasting() const { return is_lasting_; }
  // For the preamble, and for the next daemon (StoredBoardFd); closed by ForgetDescriptors once they are sent (the
  // mappings stay).
  int BoardFd() const { return is_lasting_ ? board_view_.Get() : board_fd_.Get(); }
  int LedgerFd() const { return ledger_fd_.Get(); }
  int StoredBoardFd() const { return board_fd_.Get(); }
  void ForgetDescriptors();

 private:
  Channel(SharedMemory board, UniqueFd board_view, SharedMemory ledger, UniqueFd eventfd, MemoryIs memory);
  static Result<std::unique_ptr<Channel>> Make(bool is_lasting);

  UniqueFd board_fd_;
  UniqueFd board_view_;  // of a lasting one
  UniqueFd ledger_fd_;
  UniqueFd eventfd_;
  const bool is_lasting_;
  Mapping board_mapping_;
  Mapping ledger_mapping_;
  BoardWriter board_;
  LedgerReader ledger_;
};

}  // namespace xschedd
