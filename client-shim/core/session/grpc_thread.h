// The thread on which all calls of gRPC are made, with a file descriptor table of its own.
//
// gRPC opens descriptors (epoll, wake-ups, the socket) and writes to them by number at any time. If they were in the
// host's table, a host that closes everything it did not open, as daemons do at their start, would close them, and gRPC
// would write into the files and sockets that get their numbers. A child of fork would hold the socket. A limit of open
// files would end gRPC, which aborts without its wake-ups. And a host that counts its descriptors would find unknown
// ones. So gRPC is called only here, and the threads that it creates inherit this table.
//
//   host's table   of the agent, which calls the GPU's runtime, and the host's threads: one end of the channel, the
//                  eventfd
//   own table      of this thread and gRPC's: the other end, the socket, gRPC's descriptors; 0 to 2 lead nowhere
//
// Sockets are passed by SCM_RIGHTS through the channel. Where the system does not give a thread a table of its own
// (seccomp), the host's table is shared and IsPrivate is false.
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
  // The same with a socket, which the task then owns. False: the host has closed the channel.
  bool PostSocket(UniqueFd socket, std::function<void(UniqueFd)> task);
  bool IsPrivate() const { return is_private_; }

 private:
  GrpcThread() = default;
  static void* Run(void* self);
  void Separate();
  UniqueFd Receive() const;
  void Loop();

  HostDescriptor channel_;   // the agent's end
  UniqueFd inner_end_;       // the thread's
  bool is_private_ = false;  // does not change once Start has returned
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_separate_ = false;
  std::deque<std::function<void()>> tasks_;
};

}  // namespace xschedd::shim
