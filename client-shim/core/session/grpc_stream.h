// The control plane over gRPC: the ClientSession.Session stream on an already connected socket.
//
// Messages go out one at a time, in order, from a bounded queue; what comes in is delivered as plain types. The channel
// belongs to this object. It must not be destroyed at the exit of the process (its destructor waits for ever there), so
// the agent, which owns it, is itself never destroyed; it frees an ended stream only once IsDone().
// Thread rule: Send, Cancel and IsDone, one thread (the agent's); `deliver` is called on gRPC's threads.
#pragma once

#include <functional>
#include <memory>

#include "client-shim/core/control_stream.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

class GrpcStream : public ControlStream {
 public:
  using Deliver = std::function<void(IncomingMessage)>;
  // Takes the socket (non-blocking) and starts the stream. The last message delivered is EndMessage.
  GrpcStream(UniqueFd socket, Deliver deliver);
  ~GrpcStream() override;

  void Send(const OutgoingMessage& message) override;
  // Ends the stream from this side.
  void Cancel();
  // Whether gRPC has finished with it.
  bool IsDone() const;

 private:
  class Reactor;
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace xschedd::shim
