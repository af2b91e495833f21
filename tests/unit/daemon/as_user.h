// While it lives, a process of root has another effective uid, which is also what SO_PEERCRED then reports of its
// sockets. Only for tests that run as root. Thread rule: the test's thread; affects the whole process.
#pragma once

#include <unistd.h>

#include <iostream>

#include "tests/catch.h"

namespace xschedd::test {

inline constexpr uid_t kNobody = 65534;

// False if this is not root, with a line for tests/tally.py.
inline bool CanBecomeUsers() {
  if (::geteuid() == 0) return true;
  std::cout << "skipped: " << Catch::getResultCapture().getCurrentTestName() << ": users are made by root\n";
  return false;
}

class AsUser {
 public:
  explicit AsUser(uid_t uid) { REQUIRE(::seteuid(uid) == 0); }
  ~AsUser() { [[maybe_unused]] const int done = ::seteuid(0); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
};

}  // namespace xschedd::test
