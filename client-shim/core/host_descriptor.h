// A descriptor of ours in the host's table, where the host may close any number and reuse it for a file of its own. It
// has a high number, out of the way of programs that rely on low ones, and is checked before it is used. Two cases
// remain: a foreign eventfd or epoll set under the same number, which look alike, and a host that closes it between
// check and use. Thread rule: Get from any thread; Set and IsOurs, the owner's.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "common/descriptor_identity.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

class HostDescriptor {
 public:
  // Takes the place of what is there, under the same number if that is still ours: a thread that is about to use the
  // old one uses the new one. False: the host has no descriptor left.
  bool Set(UniqueFd fd) {
    if (IsOurs()) return ::dup3(fd.Get(), fd_, O_CLOEXEC) >= 0;
    // Above what programs count on, and below what makes the table, and with it every fork, large.
    constexpr int kHigh = 900;
    const int high = ::fcntl(fd.Get(), F_DUPFD_CLOEXEC, kHigh);
    fd_ = high >= 0 ? high : fd.Release();
    identity_ = DescriptorIdentity(fd_);
    return fd_ >= 0;
  }

  int Get() const { return fd_; }
  bool IsOurs() const { return fd_ >= 0 && identity_.Matches(fd_); }

 private:
  int fd_ = -1;
  DescriptorIdentity identity_;
};

}  // namespace xschedd::shim
