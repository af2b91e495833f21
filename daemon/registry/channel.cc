#include "daemon/registry/channel.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace xschedd {

Result<std::unique_ptr<Channel>> Channel::Make() {
  auto board = MakeSharedMemory("xschedd-board", sizeof(abi::Board), PeerMayWrite::kNo);
  if (!board) return tl::unexpected(board.error());
  auto ledger = MakeSharedMemory("xschedd-ledger", sizeof(abi::Ledger), PeerMayWrite::kYes);
  if (!ledger) return tl::unexpected(ledger.error());
  UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd.IsValid()) {
    return Fail(std::string("cannot make an eventfd: ") + std::strerror(errno), "raise LimitNOFILE");
  }
  return std::unique_ptr<Channel>(new Channel(std::move(*board), std::move(*ledger), std::move(eventfd)));
}

Channel::Channel(SharedMemory board, SharedMemory ledger, UniqueFd eventfd)
    : board_fd_(std::move(board.fd)),
      ledger_fd_(std::move(ledger.fd)),
      eventfd_(std::move(eventfd)),
      board_mapping_(std::move(board.mapping)),
      ledger_mapping_(std::move(ledger.mapping)),
      board_(static_cast<abi::Board*>(board_mapping_.Address())),
      ledger_(static_cast<abi::Ledger*>(ledger_mapping_.Address()),
              static_cast<abi::Board*>(board_mapping_.Address())) {}

void Channel::ForgetDescriptors() {
  board_fd_.Reset();
  ledger_fd_.Reset();
}

}  // namespace xschedd
