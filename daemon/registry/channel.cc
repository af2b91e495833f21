#include "daemon/registry/channel.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace xschedd {
namespace {

constexpr char kBoardName[] = "xschedd-board";
constexpr char kLedgerName[] = "xschedd-ledger";

// The kernel's name of the file behind a descriptor: "/memfd:NAME (deleted)", "anon_inode:[eventfd]".
std::string KernelName(int fd) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

std::string MemfdName(std::string_view name) {
  return "/memfd:" + std::string(name) + " (deleted)";
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::Make(const abi::Layout& layout) {
  return Make(layout, false);
}

Result<std::unique_ptr<Channel>> Channel::MakeLasting(const abi::Layout& layout) {
  return Make(layout, true);
}

Result<std::unique_ptr<Channel>> Channel::Make(const abi::Layout& layout, bool is_lasting) {
  static const bool can_seal = CanSealWriting();
  const bool is_sealed = can_seal && !is_lasting;
  auto board = MakeSharedMemory(kBoardName, layout.board_bytes, is_sealed ? PeerMayWrite::kNo : PeerMayWrite::kYes);
  if (!board) return tl::unexpected(board.error());
  UniqueFd view;
  if (!is_sealed) {
    auto opened = ReadOnlyView(board->fd.Get());
    if (!opened) return tl::unexpected(opened.error());
    view = std::move(*opened);
  }
  auto ledger = MakeSharedMemory(kLedgerName, layout.ledger_bytes, PeerMayWrite::kYes);
  if (!ledger) return tl::unexpected(ledger.error());
  UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!eventfd.IsValid()) {
    return Fail(std::string("cannot make an eventfd: ") + std::strerror(errno), "raise LimitNOFILE");
  }
  return std::unique_ptr<Channel>(new Channel(layout, is_lasting, std::move(*board), std::move(view),
                                              std::move(*ledger), std::move(eventfd), MemoryIs::kNew));
}

Result<std::unique_ptr<Channel>> Channel::Rebuild(const abi::Layout& layout, std::vector<UniqueFd> descriptors) {
  SharedMemory board;
  SharedMemory ledger;
  UniqueFd eventfd;
  // A service manager guarantees no order.
  for (UniqueFd& fd : descriptors) {
    const std::string name = KernelName(fd.Get());
    UniqueFd* const place = name == MemfdName(kBoardName)    ? &board.fd
                            : name == MemfdName(kLedgerName) ? &ledger.fd
                            : name == "anon_inode:[eventfd]" ? &eventfd
                                                             : nullptr;
    if (place == nullptr || place->IsValid()) return Fail("a stored descriptor does not belong to a channel: " + name);
    *place = std::move(fd);
  }
  if (!board.fd.IsValid() || !ledger.fd.IsValid() || !eventfd.IsValid()) {
    return Fail("a stored channel has only " + std::to_string(descriptors.size()) + " descriptors");
  }
  auto board_mapping = MapSharedMemory(board.fd.Get(), layout.board_bytes, Access::kReadWrite);
  if (!board_mapping) return tl::unexpected(board_mapping.error());
  board.mapping = std::move(*board_mapping);
  auto ledger_mapping = MapSharedMemory(ledger.fd.Get(), layout.ledger_bytes, Access::kReadWrite);
  if (!ledger_mapping) return tl::unexpected(ledger_mapping.error());
  ledger.mapping = std::move(*ledger_mapping);
  auto view = ReadOnlyView(board.fd.Get());
  if (!view) return tl::unexpected(view.error());
  return std::unique_ptr<Channel>(new Channel(layout, true, std::move(board), std::move(*view), std::move(ledger),
                                              std::move(eventfd), MemoryIs::kInUse));
}

Channel::Channel(const abi::Layout& layout, bool is_lasting, SharedMemory board, UniqueFd board_view,
                 SharedMemory ledger, UniqueFd eventfd, MemoryIs memory)
    : layout_(layout),
      board_fd_(std::move(board.fd)),
      board_view_(std::move(board_view)),
      ledger_fd_(std::move(ledger.fd)),
      eventfd_(std::move(eventfd)),
      is_lasting_(is_lasting),
      board_mapping_(std::move(board.mapping)),
      ledger_mapping_(std::move(ledger.mapping)),
      board_(static_cast<abi::Board*>(board_mapping_.Address()), layout, memory),
      ledger_(static_cast<abi::Ledger*>(ledger_mapping_.Address()), static_cast<abi::Board*>(board_mapping_.Address()),
              layout, memory) {}

void Channel::ForgetDescriptors() {
  board_fd_.Reset();
  board_view_.Reset();
  ledger_fd_.Reset();
}

}  // namespace xschedd
