// What the gRPC services share: the daemon's parts, and Post, which leads from gRPC's threads to theirs. Thread rule:
// Post from any thread; everything else on the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/connections/connections.h"
#include "daemon/connections/quotas.h"
#include "daemon/core.h"
#include "daemon/registry/command_reader.h"
#include "daemon/state/persistent_state.h"

namespace xschedd {

struct Host {
  boost::asio::io_context& io;
  Core& core;
  Connections& connections;
  CommandReader& commands;
  Quotas& quotas;
  PersistentState& state;

  template <typename Action>
  void Post(Action action) {
    boost::asio::post(io, std::move(action));
  }
};

}  // namespace xschedd
