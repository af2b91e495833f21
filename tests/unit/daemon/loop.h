// Helpers for tests of code in the daemon's loop: run the loop until something has happened, and sockets whose other
// end the test holds. Thread rule: the test's thread.
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

// Runs the loop until `condition` holds, at most half a minute.
template <typename Condition>
bool RunUntil(boost::asio::io_context& io, Condition condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    io.restart();
    if (io.run_for(std::chrono::milliseconds(1)) == 0) ::usleep(1000);  // without work run_for returns at once
  }
  return false;
}

// Runs everything that is ready, several times, before a test checks that something did not happen.
inline void RunAWhile(boost::asio::io_context& io) {
  RunUntil(io, [turns = 0]() mutable { return ++turns > 5; });
}

// Runs everything due, with `action` after what was already due and before what becomes due in this turn, so that
// `action` can change something that the loop has seen but not yet reported.
template <typename Action>
void RunWith(boost::asio::io_context& io, Action action) {
  boost::asio::post(io, std::move(action));
  io.restart();
  io.poll();
}

// A socket pair, non-blocking.
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

// Whether the peer has closed. Discards what it sent before; what was sent to it may be unread.
inline bool IsClosed(const UniqueFd& socket) {
  char bytes[4096];
  ssize_t size = 0;
  while ((size = ::recv(socket.Get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
  }
  return size == 0 || errno == ECONNRESET;
}

}  // namespace xschedd::test
