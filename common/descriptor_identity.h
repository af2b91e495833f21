// What a descriptor leads to, so that it can be seen later whether its number still leads there. In a host program's
// table any number may be closed at any time and come back as a file of the host's own.
// Descriptors without an inode of their own (eventfd, epoll) look alike; one fstat, some 100 ns.
// Thread rule: a value; IsBehind from any thread.
#pragma once

#include <sys/stat.h>

namespace xschedd {

class DescriptorIdentity {
 public:
  DescriptorIdentity() = default;
  explicit DescriptorIdentity(int fd) {
    struct stat now {};
    if (::fstat(fd, &now) != 0) return;
    device_ = now.st_dev;
    inode_ = now.st_ino;
  }

  bool IsBehind(int fd) const {
    struct stat now {};
    return ::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  }

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace xschedd
