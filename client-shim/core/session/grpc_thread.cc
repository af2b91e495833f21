#include "client-shim/core/session/grpc_thread.h"

#include <absl/synchronization/mutex.h>
#include <errno.h>
#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace xschedd::shim {
namespace {

constexpr unsigned kCloseRangeUnshare = 2;  // CLOSE_RANGE_UNSHARE, linux/close_range.h

int CloseRange(unsigned first, unsigned last, unsigned flags) {
#ifndef SYS_close_range
  constexpr long SYS_close_range = 436;
#endif
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}

// Gives this thread a descriptor table of its own that contains only `keep`. Copies of the host's descriptors must not
// stay open, or the host's pipes would never end. False: the thread still shares the host's table.
bool SeparateTable(int keep) {
  const auto kept = static_cast<unsigned>(keep);
  if (CloseRange(kept + 1, ~0U, kCloseRangeUnshare) == 0) {
    if (kept > 0) CloseRange(0, kept - 1, 0);
    return true;
  }
  if (::unshare(CLONE_FILES) != 0) return false;  // Linux before 5.9 comes here
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 0; fd < static_cast<int>(limit.rlim_max); ++fd) {
    if (fd != keep) ::close(fd);
  }
  return true;
}

// Makes 0 to 2 the reading end of a pipe. So a write to standard error fails, and does not end up in a socket that has
// that number.
void FillStandardFiles() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 || fd == ends[1]) ::dup2(ends[0], fd);
  }
  if (ends[1] > 2) ::close(ends[1]);
  if (ends[0] > 2) ::close(ends[0]);
}

}  // namespace

GrpcThread* GrpcThread::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  // Never freed once the thread runs.
  auto thread = std::unique_ptr<GrpcThread>(new GrpcThread);
  UniqueFd outer(ends[0]);
  // Not 0 to 2, even if the host has closed these.
  thread->inner_end_.Reset(::fcntl(ends[1], F_DUPFD_CLOEXEC, 3));
  ::close(ends[1]);
  const int inner = thread->inner_end_.Get();
  if (inner < 0 || !thread->channel_.Set(std::move(outer))) return nullptr;
  // It inherits the agent's signal mask.
  pthread_t id;
  if (pthread_create(&id, nullptr, &GrpcThread::Run, thread.get()) != 0) {
    ::close(thread->channel_.Get());
    return nullptr;
  }
  pthread_detach(id);
  GrpcThread* const result = thread.release();
  {
    std::unique_lock lock(result->mutex_);
    result->wake_.wait(lock, [&] { return result->is_separate_; });
  }
  if (result->is_private_) ::close(inner);  // in the host's table; the thread has its own
  return result;
}

void GrpcThread::Post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  wake_.notify_all();
}

bool GrpcThread::PostSocket(UniqueFd socket, std::function<void(UniqueFd)> task) {
  if (!is_private_) {
    Post([fd = socket.Release(), task = std::move(task)] { task(UniqueFd(fd)); });
    return true;
  }
  if (!channel_.IsOurs()) return false;
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = socket.Get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(channel_.Get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) return false;
  Post([this, task = std::move(task)] { task(Receive()); });
  return true;
}

UniqueFd GrpcThread::Receive() const {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(inner_end_.Get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) return UniqueFd();
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int fd = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

void* GrpcThread::Run(void* self) {
  auto* const thread = static_cast<GrpcThread*>(self);
  pthread_setname_np(pthread_self(), "xschedd-grpc");
  thread->Separate();
  // Debian's Abseil is built without NDEBUG: it would abort at a cycle in the order in which gRPC takes its locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC shuts down with its last channel unless somebody else uses it. The shutdown waits up to 10 s, or for ever in a
  // process that is stopped again and again, if a daemon has ended without reading all (gRPC 1.51:
  // Executor::SetThreading joins a thread that is in run_poller of tcp_posix.cc). The next connection would wait for it
  // on this thread.
  grpc_init();
  thread->Loop();
  return nullptr;
}

void GrpcThread::Separate() {
  const bool is_private = SeparateTable(inner_end_.Get());
  if (is_private) FillStandardFiles();
  // gRPC must not log to the host's standard error.
  gpr_set_log_function([](gpr_log_func_args*) {});
  const std::lock_guard lock(mutex_);
  is_private_ = is_private;
  is_separate_ = true;
  wake_.notify_all();
}

void GrpcThread::Loop() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !tasks_.empty(); });
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace xschedd::shim
