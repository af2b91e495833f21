// What tests of things that live in the daemon's loop share: the loop is turned until something has happened, and
// sockets whose other end is the test's. Thread rule: the test's thread.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "common/unique_fd.h"
#include "tests/catch.h"

namespace xschedd::test {

// Runs the loop until `condition` holds, half a minute at most.
template <typename Condition>
bool RunUntil(boost::asio::io_context& io, Condition condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    io.restart();
    if (io.run_for(std::chrono::milliseconds(1)) == 0) ::usleep(1000);  // without work the loop does not wait
  }
  return false;
}

// For what must not happen: all that is ready is done, several times.
inline void RunAWhile(boost::asio::io_context& io) {
  RunUntil(io, [looks = 0]() mutable { return ++looks > 5; });
}

// Runs all that is due, with `action` behind what was due already, and before what only comes with this turn: what the
// loop has seen, and has not told yet, when `action` changes it.
template <typename Action>
void RunWith(boost::asio::io_context& io, Action action) {
  boost::asio::post(io, std::move(action));
  io.restart();
  io.poll();
}

// Not blocking.
struct Pair {
  Pair() {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    ours.Reset(pair[0]);
    peers.Reset(pair[1]);
  }
  UniqueFd ours;
  UniqueFd peers;
};

inline void Say(const UniqueFd& socket, std::string_view text) {
  REQUIRE(::send(socket.Get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

// Whether the other side has closed; what it said before is taken, and what was said to it may be unread.
inline bool IsClosed(const UniqueFd& socket) {
  char bytes[4096];
  ssize_t size = 0;
  while ((size = ::recv(socket.Get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
  }
  return size == 0 || errno == ECONNRESET;
}

}  // namespace xschedd::test
