// The thread that gRPC lives on, with a table of file descriptors of its own.
//
// gRPC opens descriptors (epoll, wake-ups, the socket) and writes to them by number whenever it likes. In the host's
// table a host that closes everything it did not open, as a daemon does at its start, would take them away, and gRPC
// would then write into the files and sockets that get their numbers. Nor may a child of fork hold the socket, a limit
// of open files end gRPC (it aborts without its wake-ups), or a count of descriptors surprise the host. So all calls of
// gRPC are made here, and threads that it makes inherit the table.
//
//   host's table   agent (calls of the GPU's runtime need it), the host's threads: one end of the channel, the eventfd
//   own table      this thread and gRPC's: the socket, gRPC's own; 0 to 2 lead nowhere
//
// Sockets come over by SCM_RIGHTS through a channel that both tables have an end of. Where the system does not give a
// thread a table of its own (seccomp), the host's is shared and IsPrivate is false.
// Thread rule: Start, Post and PostSocket, the agent's thread. The object is never destroyed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "client-shim/core/host_descriptor.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

class GrpcThread {
 public:
  // Null where the system has no thread or descriptor left.
  static GrpcThread* Start();

  // Runs `task` on the thread, in order.
  void Post(std::function<void()> task);
  // The same with a socket, which is the task's from then on. False: the host has closed the channel.
  bool PostSocket(UniqueFd socket, std::function<void(UniqueFd)> task);
  bool IsPrivate() const { return is_private_; }

 private:
  GrpcThread() = default;
  static void* Run(void* self);
  void Separate();
  UniqueFd Receive() const;
  void Loop();

  HostDescriptor channel_;  // the agent's end
  UniqueFd inner_end_;      // the thread's
  bool is_private_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_separate_ = false;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace xschedd::shim
