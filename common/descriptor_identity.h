// The file that a descriptor number refers to, to check later whether it still does: a host program may close any
// number at any time, and reuse it for a file of its own. Descriptors without an inode of their own (eventfd, epoll)
// cannot be told apart. A check is one fstat, some 100 ns. Thread rule: a value; Matches from any thread.
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

  bool Matches(int fd) const {
    struct stat now {};
    return ::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  }

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace xschedd
