// The control plane over gRPC: the ClientSession.Session stream on an already connected socket.
//
// Messages are sent one at a time, in order; received messages are delivered as plain types. The object owns the
// channel. A channel must not be destroyed at the exit of the process, because its destructor would wait forever. So
// the agent, which owns the streams, is never destroyed, and frees a stream only once IsDone(). Thread rule: Send,
// HasRoom, Cancel and IsDone, one thread (the agent's); `deliver` is called on gRPC's threads. All calls of gRPC are
// made on the GrpcThread.
#pragma once

#include <functional>
#include <memory>

#include "client-shim/core/control_messages.h"
#include "client-shim/core/session/grpc_thread.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

class GrpcStream {
 public:
  using Deliver = std::function<void(IncomingMessage)>;
  // Takes the socket (non-blocking) and starts the stream. The last message delivered is EndMessage. Null: the socket
  // cannot be passed to `thread`, because the host has closed its channel.
  static std::unique_ptr<GrpcStream> Make(GrpcThread* thread, UniqueFd socket, Deliver deliver);
  ~GrpcStream();

  // Never blocks. Without HasRoom the queue still grows, so only messages that are few may be sent.
  void Send(const OutgoingMessage& message);
  // False: enough messages are not yet written. A RoomMessage is delivered once there is room again, unless the stream
  // ends before.
  bool HasRoom();
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
