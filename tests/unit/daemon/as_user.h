// Root is another user while it lives: for the kernel, and for whoever asks who made a socket. Only for a test that
// runs as root. Thread rule: the test's thread; the user is the whole process's.
#pragma once

#include <unistd.h>

#include "tests/catch.h"

namespace xschedd::test {

inline constexpr uid_t kNobody = 65534;

class AsUser {
 public:
  explicit AsUser(uid_t uid) { REQUIRE(::seteuid(uid) == 0); }
  ~AsUser() { [[maybe_unused]] const int done = ::seteuid(0); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
};

}  // namespace xschedd::test
