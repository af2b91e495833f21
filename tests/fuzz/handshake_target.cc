// The first bytes of a connection, in pieces, with ends in between: the daemon's half of the preamble.
// Properties: a shim with the right hello is welcomed with three descriptors; no byte of a plain client is consumed;
// nothing else is admitted; no descriptor leaks.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <utility>

#include "common/preamble_client.h"
#include "daemon/connections/connections.h"
#include "tests/fuzz/descriptors.h"
#include "tests/fuzz/equip.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"

namespace {

using namespace xschedd;

struct Dialogue {
  std::string sent;  // by the client
  UniqueFd client;
  int adopted = -1;
  std::string received;  // there
};

constexpr int kMaxRounds = 2000;

// Waits until all bytes behind a hello of `hello` bytes have been relayed to gRPC.
void Carry(boost::asio::io_context& io, Dialogue& told, std::size_t hello) {
  char bytes[512];
  for (int round = 0; round < kMaxRounds && told.received.size() + hello <= told.sent.size(); ++round) {
    const ssize_t size = ::recv(told.adopted, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size == 0) return;
    if (size > 0) told.received.append(bytes, static_cast<std::size_t>(size));
    if (told.received.size() + hello == told.sent.size()) return;
    io.restart();
    if (io.poll() == 0) io.run_for(std::chrono::milliseconds(1));
  }
}

void Check(Dialogue& told) {
  const bool is_shim = told.sent.compare(0, 4, {kHelloMagic, 4}) == 0;
  PreambleHello hello{};
  std::memcpy(&hello, told.sent.data(), std::min(sizeof hello, told.sent.size()));
  const bool is_whole = told.sent.size() >= sizeof hello;
  const bool is_right = is_shim && is_whole && abi::FindSpoken(hello.abi_version, hello.layout_hash) != nullptr;
  PreambleWelcome welcome{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
  iovec piece{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(told.client.Get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  std::size_t descriptors = 0;
  for (cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      ::close(fd);
      ++descriptors;
    }
  }
  if (got > 0) {
    FUZZ_CHECK(got == static_cast<ssize_t>(sizeof welcome));
    // Over its quota a peer is refused before it has sent anything.
    FUZZ_CHECK(welcome.status == PreambleStatus::kQuota || (is_shim && is_whole));
    FUZZ_CHECK((welcome.status == PreambleStatus::kOk) == (descriptors == kPreambleDescriptors));
    FUZZ_CHECK(welcome.status != PreambleStatus::kOk || is_right);
  }
  if (told.adopted >= 0) {
    FUZZ_CHECK(is_right || !is_shim);
    // The bytes for gRPC are still there.
    const std::string left = is_right ? told.sent.substr(sizeof hello) : told.sent;
    FUZZ_CHECK(told.received == left);
  }
}

void Run(fuzz::Input& input) {
  Quotas quotas{Quota{}};
  boost::asio::io_context io;  // ends before the quotas: its handlers keep connections
  Dialogue told;
  Connections connections(io, quotas,
                          {[&](const Connection& connection) { told.adopted = connection.fd; }, [](Connection&) {},
                           [](const Principal&, const std::string& why) { FUZZ_CHECK(fuzz::IsOneLine(why, 512)); },
                           &fuzz::Equip, [](Connection&) {}});
  const std::uint8_t how = input.Byte();
  if ((how & 1) != 0) connections.AcceptShims(false);
  if ((how & 2) != 0) quotas.SetLimits(fuzz::ConnectionsAtMost(how % 3));
  int ends[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  told.client.Reset(ends[0]);
  connections.Accept(UniqueFd(ends[1]), (how & 4) != 0);
  bool may_write = true;
  int waits = 0;
  while (!input.IsEmpty()) {
    const std::uint8_t op = input.Byte();
    if (op < 160) {
      const std::string piece = input.ShortText();
      const ssize_t sent =
          may_write && !piece.empty() ? ::send(told.client.Get(), piece.data(), piece.size(), MSG_NOSIGNAL) : 0;
      // Bytes behind the preamble are for gRPC; they must still be there.
      if (sent > 0) told.sent.append(piece, 0, static_cast<std::size_t>(sent));
    } else if (op < 220) {
      io.restart();
      io.poll();
    } else if (op < 230 && waits < 2) {
      ++waits;
      io.restart();
      io.run_for(std::chrono::milliseconds(3));
    } else if (op < 245) {
      ::shutdown(told.client.Get(), SHUT_WR);
      may_write = false;
    }
  }
  io.restart();
  io.poll();
  if (told.adopted >= 0) Carry(io, told, told.sent.compare(0, 4, {kHelloMagic, 4}) == 0 ? sizeof(PreambleHello) : 0);
  Check(told);
  if (told.adopted >= 0 && (how & 8) != 0) connections.Close(told.adopted);
  told.client.Reset();
  connections.CloseAll();
  if (told.adopted >= 0) ::close(told.adopted);
  io.restart();
  io.poll();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::BeQuiet();
  fuzz::Input input(data, size);
  fuzz::CheckNoLeak([&] { Run(input); });
  return 0;
}
