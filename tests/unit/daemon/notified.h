// A service manager as the daemon sees it: a notification socket and an environment. Thread rule: the test's thread,
// while no other uses the environment.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"

namespace xschedd::test {

class Notified {
 public:
  explicit Notified(const char* most) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_.Path() + "/notify";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd_.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    if (most != nullptr) ::setenv("FDSTORE", most, 1);
  }
  ~Notified() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("FDSTORE");
  }
  Notified(const Notified&) = delete;
  Notified& operator=(const Notified&) = delete;
  // All messages so far, one per line.
  std::vector<std::string> Said() const {
    std::vector<std::string> said;
    char buffer[512];
    for (;;) {
      const ssize_t size = ::recv(fd_.Get(), buffer, sizeof buffer, 0);
      if (size < 0) return said;
      said.emplace_back(buffer, static_cast<std::size_t>(size));
    }
  }

 private:
  UniqueFd fd_;
  const Folder folder_;
};

}  // namespace xschedd::test
