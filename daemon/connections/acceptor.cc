#include "daemon/connections/acceptor.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace xschedd {
namespace {

using boost::system::error_code;

constexpr std::chrono::milliseconds kRetry{200};
constexpr int kAtOnce = 8;  // connections accepted before the loop does other work

}  // namespace

Acceptor::Acceptor(boost::asio::io_context& io, int listening, std::function<void(UniqueFd)> on_accept)
    : listening_(io, listening), retry_(io), on_accept_(std::move(on_accept)) {}

Acceptor::~Acceptor() {
  Stop();
}

void Acceptor::Start() {
  listening_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (!error) AcceptAll();
  });
}

void Acceptor::AcceptAll() {
  for (int i = 0; i < kAtOnce; ++i) {
    UniqueFd socket(::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.IsValid()) {
      on_accept_(std::move(socket));
      continue;
    }
    const int error_number = errno;  // logging may change errno
    if (error_number == EINTR || error_number == ECONNABORTED) continue;
    if (error_number == EAGAIN) break;
    // Out of descriptors or memory. The connection stays queued and readable, so waiting for readability would spin.
    SPDLOG_ERROR("cannot accept a connection error=\"{}\" remedy=\"raise LimitNOFILE\"", std::strerror(error_number));
    retry_.expires_after(kRetry);
    retry_.async_wait([this](const error_code& error) {
      if (!error) AcceptAll();
    });
    return;
  }
  Start();
}

void Acceptor::Stop() {
  retry_.cancel();
  if (listening_.is_open()) listening_.release();
}

}  // namespace xschedd
