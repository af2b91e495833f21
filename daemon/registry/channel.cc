#include "daemon/registry/channel.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace xschedd {

Result<std::unique_ptr<Channel>> Channel::Make(const abi::Layout& layout) {
  auto board = MakeSharedMemory("xschedd-board", layout.board_bytes, PeerMayWrite::kNo);
  if (!board) return tl::unexpected(board.error());
  auto ledger = MakeSharedMemory("xschedd-ledger", layout.ledger_bytes, PeerMayWrite::kYes);
  if (!ledger) return tl::unexpected(ledger.error());
  UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd.IsValid()) {
    return Fail(std::string("cannot make an eventfd: ") + std::strerror(errno), "raise LimitNOFILE");
  }
  return std::unique_ptr<Channel>(new Channel(layout, std::move(*board), std::move(*ledger), std::move(eventfd)));
}

Channel::Channel(const abi::Layout& layout, SharedMemory board, SharedMemory ledger, UniqueFd eventfd)
    : layout_(layout),
      board_fd_(std::move(board.fd)),
      ledger_fd_(std::move(ledger.fd)),
      eventfd_(std::move(eventfd)),
      board_mapping_(std::move(board.mapping)),
      ledger_mapping_(std::move(ledger.mapping)),
      board_(static_cast<abi::Board*>(board_mapping_.Address()), layout),
      ledger_(static_cast<abi::Ledger*>(ledger_mapping_.Address()), static_cast<abi::Board*>(board_mapping_.Address()),
              layout) {}

void Channel::ForgetDescriptors() {
  board_fd_.Reset();
  ledger_fd_.Reset();
}

}  // namespace xschedd
