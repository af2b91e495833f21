#include "tools/nri/link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace xschedd::nri {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
// An engine that reads nothing for this long has given up on this plugin.
constexpr timeval kSendLimit{2, 0};

}  // namespace

Link::Link(UniqueFd fd) : fd_(std::move(fd)) {
  ::setsockopt(fd_.Get(), SOL_SOCKET, SO_SNDTIMEO, &kSendLimit, sizeof(kSendLimit));
}

Result<std::optional<Link::Incoming>> Link::Take() {
  for (;;) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto frame = streams_.at(i).Next();
      if (!frame) return tl::unexpected(frame.error());
      if (*frame) return Incoming{static_cast<Connection>(i + 1), std::move(**frame)};
    }
    const auto part = mux_.Next();
    if (!part) return tl::unexpected(part.error());
    if (!*part) return std::nullopt;
    // Connections that the plugin does not have are skipped.
    const std::size_t at = std::size_t{(*part)->connection} - 1;
    if (at < streams_.size()) streams_.at(at).Add((*part)->payload);
  }
}

Result<std::optional<Link::Incoming>> Link::Receive(std::chrono::milliseconds limit, int also) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    auto taken = Take();
    if (!taken || *taken) return taken;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    std::array<pollfd, 2> both{{{fd_.Get(), POLLIN, 0}, {also, POLLIN, 0}}};
    const int ready = ::poll(both.data(), both.size(), left > 0 ? static_cast<int>(left) : 0);
    if (ready == 0) return std::nullopt;
    if (ready < 0 && errno == EINTR) continue;
    if (both[0].revents == 0) return std::nullopt;
    std::string bytes(kReadBytes, '\0');
    const ssize_t count = ::recv(fd_.Get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(std::string("cannot read from the container engine: ") + std::strerror(errno));
    if (count == 0) return Fail("the container engine closed the connection");
    mux_.Add(std::string_view(bytes).substr(0, static_cast<std::size_t>(count)));
  }
}

Result<void> Link::Send(Connection connection, const TtrpcFrame& frame) {
  const std::string bytes = EncodeMux(connection, EncodeTtrpc(frame));
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(fd_.Get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Fail(std::string("cannot write to the container engine: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace xschedd::nri
