#include "daemon/connections/handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

namespace xschedd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// An incomplete hello is checked again after kPiece, then after twice as long each time: the peeked bytes stay unread,
// so waiting for readability would return at once. A shim sends its hello whole, so only others wait, and a thousand
// that never send the rest cost little.
constexpr std::chrono::milliseconds kPiece{2};
constexpr std::chrono::milliseconds kLongestPiece{256};

class FirstBytesWait : public std::enable_shared_from_this<FirstBytesWait> {
 public:
  FirstBytesWait(asio::io_context& io, UniqueFd socket, std::function<void(Result<FirstBytes>)> done)
      : socket_(io), piece_(io), limit_(io), done_(std::move(done)) {
    socket_.assign(socket.Release());
  }

  void Start(std::chrono::milliseconds limit) {
    limit_.expires_after(limit);
    limit_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->End(Fail("the client sent no preamble in time"));
    });
    Await();
  }

 private:
  void Await() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](const error_code& error) {
      if (!error) self->Peek();
    });
  }

  void AwaitMore() {
    piece_.expires_after(next_piece_);
    next_piece_ = std::min(2 * next_piece_, kLongestPiece);
    piece_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->Peek();
    });
  }

  // May run once more after the end if both timers were due together; the socket is closed then, and End does nothing.
  void Peek() {
    PreambleHello hello{};
    const ssize_t size = ::recv(socket_.native_handle(), &hello, sizeof hello, MSG_PEEK | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Await();
    if (size <= 0) return End(Fail("the client closed the connection before it sent anything"));
    if (size < static_cast<ssize_t>(sizeof hello.magic)) return AwaitMore();
    if (std::memcmp(hello.magic, kHelloMagic, sizeof kHelloMagic) != 0) {
      return End(FirstBytes{UniqueFd(socket_.release()), std::nullopt});
    }
    if (size < static_cast<ssize_t>(sizeof hello)) return AwaitMore();
    // The whole hello has arrived; this consumes it and no more.
    [[maybe_unused]] const ssize_t taken = ::recv(socket_.native_handle(), &hello, sizeof hello, MSG_DONTWAIT);
    End(FirstBytes{UniqueFd(socket_.release()), hello});
  }

  void End(Result<FirstBytes> result) {
    if (ended_) return;
    ended_ = true;
    limit_.cancel();
    piece_.cancel();
    if (socket_.is_open()) {
      error_code ignored;
      socket_.close(ignored);
    }
    done_(std::move(result));
  }

  asio::posix::stream_descriptor socket_;
  asio::steady_timer piece_;
  std::chrono::milliseconds next_piece_ = kPiece;
  asio::steady_timer limit_;
  std::function<void(Result<FirstBytes>)> done_;
  bool ended_ = false;
};

}  // namespace

void AwaitFirstBytes(asio::io_context& io, UniqueFd socket, std::chrono::milliseconds limit,
                     std::function<void(Result<FirstBytes>)> done) {
  std::make_shared<FirstBytesWait>(io, std::move(socket), std::move(done))->Start(limit);
}

bool SendWelcome(int socket, PreambleStatus status, const char (&token)[16], const Channel* channel) {
  PreambleWelcome welcome{};
  std::memcpy(welcome.magic, kWelcomeMagic, sizeof welcome.magic);
  welcome.status = status;
  const abi::Layout& layout = channel != nullptr ? channel->Layout() : abi::Newest();
  welcome.abi_version = layout.version;
  welcome.layout_hash = layout.layout_hash;
  std::memcpy(welcome.token, token, sizeof welcome.token);

  iovec bytes{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPreambleDescriptors)] = {};
  if (channel != nullptr) {
    const int descriptors[kPreambleDescriptors] = {channel->BoardFd(), channel->LedgerFd(), channel->EventFd()};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  }
  // A fresh connection has room for 40 bytes; a full one is not worth waiting for.
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof welcome);
}

}  // namespace xschedd
