// Accepts connections on a listening socket. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "common/unique_fd.h"

namespace xschedd {

class Acceptor {
 public:
  // `listening` is non-blocking, belongs to the caller and must outlive the acceptor.
  Acceptor(boost::asio::io_context& io, int listening, std::function<void(UniqueFd)> on_accept);
  ~Acceptor();
  void Start();
  void Stop();

 private:
  void AcceptAll();

  boost::asio::posix::stream_descriptor listening_;
  boost::asio::steady_timer retry_;
  std::function<void(UniqueFd)> on_accept_;
};

}  // namespace xschedd
