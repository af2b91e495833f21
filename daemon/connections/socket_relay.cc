#include "daemon/connections/socket_relay.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/clock.h"
#include "daemon/connections/await_end.h"

namespace xschedd {

using boost::system::error_code;

namespace {

// Returns the bytes taken; negative: the other side has closed.
ssize_t Send(boost::asio::posix::stream_descriptor& to, const char* bytes, std::size_t size) {
  const ssize_t sent = ::send(to.native_handle(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

}  // namespace

SocketRelay::SocketRelay(boost::asio::io_context& io, UniqueFd client, UniqueFd grpc, AdmissionControl* admission,
                         Principal principal, Callbacks callbacks)
    : client_(io, client.Release()),
      grpc_(io, grpc.Release()),
      admission_(admission),
      principal_(std::move(principal)),
      callbacks_(std::move(callbacks)),
      pause_(io) {}

void SocketRelay::Start() {
  AwaitClient();
  AwaitGrpc();
}

void SocketRelay::Stop() {
  if (std::exchange(stopped_, true)) return;
  pause_.cancel();
  CloseForGood(client_);
  CloseForGood(grpc_);
}

void SocketRelay::Charge(std::uint64_t cost_ns) {
  if (admission_ == nullptr) return;
  share_.Spend(cost_ns, MonotonicNs());
  admission_->Charge(principal_, cost_ns);
}

void SocketRelay::AwaitClient() {
  client_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const error_code& error) {
    if (!error && !self->stopped_) self->AwaitTurn();
  });
}

void SocketRelay::AwaitTurn() {
  if (admission_ == nullptr) {
    TakeTurn();
    return;
  }
  std::chrono::nanoseconds pause(share_.DebtNs(MonotonicNs()));
  if (pause.count() == 0) pause = callbacks_.pause();
  if (pause.count() == 0) {
    return admission_->Await(principal_, [self = shared_from_this()] { return self->TakeTurn(); });
  }
  pause_.expires_after(pause);
  pause_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->stopped_) self->AwaitTurn();
  });
}

std::uint64_t SocketRelay::TakeTurn() {
  if (stopped_) return 0;
  const std::uint64_t cost_ns = cost::kTurnNs + cost::kByteNs * Carry(in_, &SocketRelay::AwaitClient);
  share_.Spend(cost_ns, MonotonicNs());
  return cost_ns;
}

void SocketRelay::AwaitGrpc() {
  grpc_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const error_code& error) {
    if (!error && !self->stopped_) self->Carry(self->out_, &SocketRelay::AwaitGrpc);
  });
}

std::size_t SocketRelay::Carry(Direction& way, void (SocketRelay::*next)()) {
  char bytes[kTurnBytes];
  const ssize_t size = ::recv(way.from.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    (this->*next)();
    return 0;
  }
  if (size <= 0) {
    End();
    return 0;
  }
  const ssize_t sent = Send(way.to, bytes, static_cast<std::size_t>(size));
  if (sent < 0) {
    End();
  } else if (sent == size) {
    (this->*next)();
  } else {
    way.rest.assign(bytes + sent, static_cast<std::size_t>(size - sent));
    AwaitRoom(way, next);
  }
  return static_cast<std::size_t>(size);
}

void SocketRelay::AwaitRoom(Direction& way, void (SocketRelay::*next)()) {
  way.to.async_wait(Descriptor::wait_write, [self = shared_from_this(), &way, next](const error_code& error) {
    if (error || self->stopped_) return;
    const ssize_t sent = Send(way.to, way.rest.data(), way.rest.size());
    if (sent < 0) return self->End();
    way.rest.erase(0, static_cast<std::size_t>(sent));
    if (!way.rest.empty()) return self->AwaitRoom(way, next);
    way.rest.shrink_to_fit();  // idle buffers of a thousand connections add up
    (self.get()->*next)();
  });
}

void SocketRelay::End() {
  const auto self = shared_from_this();  // the callback may release the last reference
  Stop();
  callbacks_.ended();
}

}  // namespace xschedd
