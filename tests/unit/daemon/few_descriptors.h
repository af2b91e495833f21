// Limits how many more files the process may open while it lives, to test a full table without filling it. Thread rule:
// the test's thread; affects the whole process.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/catch.h"

namespace xschedd::test {

class FewDescriptors {
 public:
  // The lowest free numbers are used first, so those free below `next` stay available.
  explicit FewDescriptors(rlim_t more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    REQUIRE(next >= 0);
    ::close(next);
    Allow(static_cast<rlim_t>(next) + more);
  }
  ~FewDescriptors() { End(); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  void End() { Allow(before_.rlim_cur); }

 private:
  void Allow(rlim_t limit) const {
    const rlimit set{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &set);
  }

  rlimit before_{};
};

}  // namespace xschedd::test
