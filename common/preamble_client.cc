#include "common/preamble_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace xschedd {
namespace {

bool WaitFor(int fd, short events, int timeout_ms) {
  pollfd waiting{fd, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) errno = ETIMEDOUT;
  return ready > 0;
}

// Receives the welcome and the descriptors that come with it.
bool Receive(int socket, Welcomed* welcomed, int timeout_ms) {
  PreambleWelcome* const welcome = &welcomed->welcome;
  std::size_t have = 0;
  int next = 0;
  while (have < sizeof *welcome) {
    if (!WaitFor(socket, POLLIN, timeout_ms)) return false;
    iovec piece{reinterpret_cast<char*>(welcome) + have, sizeof *welcome - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPreambleDescriptors)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      if (got == 0) errno = ECONNRESET;
      return false;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        UniqueFd owned(fd);  // closes a surplus one
        if (next < kPreambleDescriptors) welcomed->descriptors[next++] = std::move(owned);
      }
    }
    have += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

PreambleHello MakeHello(const abi::Layout& layout) {
  PreambleHello hello{};
  std::memcpy(hello.magic, kHelloMagic, sizeof hello.magic);
  hello.abi_version = layout.version;
  hello.layout_hash = layout.layout_hash;
  return hello;
}

std::optional<Welcomed> SayHello(int socket, const PreambleHello& hello, int timeout_ms) {
  // The empty buffer of a fresh socket takes 16 bytes whole, or not at all if the daemon has refused us at once and
  // hung up; its reason can then still be read.
  [[maybe_unused]] const ssize_t sent = ::send(socket, &hello, sizeof hello, MSG_NOSIGNAL);
  std::optional<Welcomed> welcomed(std::in_place);
  if (!Receive(socket, &*welcomed, timeout_ms)) return std::nullopt;
  return welcomed;
}

Greeting GreetDaemon(const std::function<UniqueFd()>& connect, int timeout_ms) {
  Greeting greeting;
  greeting.layout = &abi::Newest();
  for (int attempt = 0; attempt < 2; ++attempt) {
    greeting.socket = connect();
    greeting.welcomed.reset();
    if (!greeting.socket.IsValid()) break;
    greeting.welcomed = SayHello(greeting.socket.Get(), MakeHello(*greeting.layout), timeout_ms);
    if (!greeting.welcomed || greeting.welcomed->welcome.status != PreambleStatus::kVersionMismatch) break;
    const PreambleWelcome& welcome = greeting.welcomed->welcome;
    const abi::Layout* const older = abi::FindSpoken(welcome.abi_version, welcome.layout_hash);
    if (older == nullptr || older == greeting.layout) break;
    greeting.layout = older;
  }
  return greeting;
}

}  // namespace xschedd
