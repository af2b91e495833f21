// The client's half of the preamble with a daemon that sends any answer, in pieces and with any descriptors; then its
// shared memory is mapped as by the shim. Properties: no descriptor leaks, nothing waits for long.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "common/board.h"
#include "common/ledger.h"
#include "common/preamble_client.h"
#include "common/shared_memory.h"
#include "tests/fuzz/descriptors.h"
#include "tests/fuzz/input.h"

namespace {

using namespace xschedd;

// A descriptor that a daemon could send: the right one, or one of another size, not sealed, or not memory at all.
UniqueFd MakeDescriptor(std::uint8_t kind, std::string_view content) {
  if (kind % 6 == 0) return UniqueFd(::dup(STDERR_FILENO));
  const std::size_t size = kind % 6 == 1 ? 100 : (kind & 8) != 0 ? sizeof(abi::Board) : sizeof(abi::Ledger);
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  FUZZ_CHECK(fd.IsValid() && ::ftruncate(fd.Get(), static_cast<off_t>(size)) == 0);
  FUZZ_CHECK(::pwrite(fd.Get(), content.data(), std::min(content.size(), size), 0) >= 0);
  if (kind % 6 != 2) ::fcntl(fd.Get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

void Send(int socket, std::string_view bytes, const std::vector<UniqueFd>& descriptors) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
  if (!descriptors.empty()) {
    int numbers[8];
    for (std::size_t i = 0; i < descriptors.size(); ++i)
      numbers[i] = descriptors[i].Get();
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(header), numbers, sizeof(int) * descriptors.size());
  }
  [[maybe_unused]] const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Use(Welcomed& welcomed) {
  const Result<Mapping> board = MapSharedMemory(welcomed.descriptors[0].Get(), sizeof(abi::Board), Access::kReadOnly);
  const Result<Mapping> ledger =
      MapSharedMemory(welcomed.descriptors[1].Get(), sizeof(abi::Ledger), Access::kReadWrite);
  if (!board || !ledger) return;
  const auto* mapped = static_cast<const abi::Board*>(board->Address());
  const Result<BoardReader> reader = BoardReader::Open(mapped);
  const Result<LedgerWriter*> writer = LedgerWriter::Open(static_cast<abi::Ledger*>(ledger->Address()), mapped, -1);
  const std::unique_ptr<LedgerWriter> owned(writer ? *writer : nullptr);
  if (!reader || !writer) return;
  for (int i = 0; i < 3; ++i)
    (void)owned->Report(0, abi::TransitionKind::kBusy, 1);
  (void)reader->Word(0);
}

void Run(fuzz::Input& input) {
  int ends[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  const UniqueFd client(ends[0]);
  UniqueFd daemon(ends[1]);
  const bool hangs_up = input.Flag();
  std::size_t promised = 0;
  while (!input.IsEmpty()) {
    std::vector<UniqueFd> descriptors;
    const std::uint8_t count = input.Byte() % 9;
    for (std::uint8_t i = 0; i < count; ++i)
      descriptors.push_back(MakeDescriptor(input.Byte(), input.Sixteen()));
    const std::string bytes = input.ShortText();
    if (bytes.empty()) continue;
    promised += bytes.size();
    Send(daemon.Get(), bytes, descriptors);
  }
  if (hangs_up || promised < sizeof(PreambleWelcome)) ::shutdown(daemon.Get(), SHUT_WR);
  std::optional<Welcomed> welcomed = SayHello(client.Get(), MakeHello(), 100);
  FUZZ_CHECK(!welcomed || promised >= sizeof(PreambleWelcome));
  if (welcomed) Use(*welcomed);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  fuzz::CheckNoLeak([&] { Run(input); });
  return 0;
}
