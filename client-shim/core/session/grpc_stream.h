// The control plane over gRPC: the ClientSession.Session stream on an already connected socket.
//
// Messages go out one at a time, in order, from a bounded queue; what comes in is delivered as plain types. The channel
// belongs to this object. It must not be destroyed at the exit of the process (its destructor waits for ever there), so
// the agent, which owns it, is itself never destroyed; it frees an ended stream only once IsDone().
// Thread rule: Send, Cancel and IsDone, one thread (the agent's); `deliver` is called on gRPC's threads. What calls
// gRPC is passed on to the GrpcThread.
#pragma once

#include <functional>
#include <memory>

#include "client-shim/core/control_stream.h"
#include "client-shim/core/session/grpc_thread.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

class GrpcStream : public ControlStream {
 public:
  using Deliver = std::function<void(IncomingMessage)>;
  // Takes the socket (non-blocking) and starts the stream. The last message delivered is EndMessage. Null: the socket
  // cannot be brought to `thread` any more.
  static std::unique_ptr<GrpcStream> Make(GrpcThread* thread, UniqueFd socket, Deliver deliver);
  ~GrpcStream() override;

  void Send(const OutgoingMessage& message) override;
  // Ends the stream from this side.
  void Cancel();
  // Whether gRPC has finished with it.
  bool IsDone() const;

 private:
  class Reactor;
  struct State;
  explicit GrpcStream(GrpcThread* thread);

  GrpcThread* const thread_;
  const std::shared_ptr<State> state_;  // shared with the tasks on the thread
};

}  // namespace xschedd::shim
