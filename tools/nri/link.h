// The socket to the container engine: sends and receives ttrpc's messages in NRI's two connections. Thread rule: one
// thread.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/unique_fd.h"
#include "tools/nri/frames.h"

namespace xschedd::nri {

// As NRI numbers them.
enum Connection : std::uint32_t {
  kPluginConnection = 1,   // the engine calls the plugin
  kRuntimeConnection = 2,  // the plugin calls the engine
};

class Link {
 public:
  struct Incoming {
    Connection connection;
    TtrpcFrame frame;
  };

  // `fd` blocks.
  explicit Link(UniqueFd fd);

  // nullopt: none came in this time, or `also` can be read (-1: nothing else is waited for). Fails when the engine is
  // gone, or sends something that is not a message.
  Result<std::optional<Incoming>> Receive(std::chrono::milliseconds limit, int also = -1);
  Result<void> Send(Connection connection, const TtrpcFrame& frame);

 private:
  // The next message that has already arrived whole.
  Result<std::optional<Incoming>> Take();

  UniqueFd fd_;
  MuxReader mux_;
  std::array<TtrpcReader, 2> streams_;  // by connection, from 1
};

}  // namespace xschedd::nri
