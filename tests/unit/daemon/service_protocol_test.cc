// The service manager's environment variables, and what arrives on its socket.
#include "daemon/service_manager/service_protocol.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/notified.h"

using namespace xschedd;

namespace {

void Say(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// Takes no real descriptors: 3 and above belong to the test. (tests/integration/daemon/starting_test.cc has a daemon
// take some.)
struct Handed {
  std::string pid, fds, names;
};
std::string WhatIsTaken(const Handed& handed) {
  Say("LISTEN_PID", handed.pid);
  Say("LISTEN_FDS", handed.fds);
  Say("LISTEN_FDNAMES", handed.names);
  const auto taken = TakePassedDescriptors();
  CHECK(std::getenv("LISTEN_PID") == nullptr);
  CHECK(std::getenv("LISTEN_FDS") == nullptr);
  CHECK(std::getenv("LISTEN_FDNAMES") == nullptr);
  return taken.has_value() ? std::to_string(taken->size()) : "refused";
}

// While it lives, descriptor 3, the first that a service manager passes, is the test's: closed at first.
class FirstPassed {
 public:
  FirstPassed() : flags_(::fcntl(kNumber, F_GETFD)), before_(::fcntl(kNumber, F_DUPFD_CLOEXEC, 100)) {
    ::close(kNumber);
  }
  ~FirstPassed() {
    ::close(kNumber);
    if (before_.IsValid()) ::dup3(before_.Get(), kNumber, (flags_ & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  }
  FirstPassed(const FirstPassed&) = delete;
  FirstPassed& operator=(const FirstPassed&) = delete;

  static constexpr int kNumber = 3;

 private:
  const int flags_;
  const UniqueFd before_;
};

ino_t Inode(int fd) {
  struct stat status {};
  REQUIRE(::fstat(fd, &status) == 0);
  return status.st_ino;
}

}  // namespace

TEST_CASE("descriptors are taken only by the named process, one per name") {
  const std::string self = std::to_string(::getpid());
  CHECK(WhatIsTaken({self, "0", ""}) == "0");
  CHECK(WhatIsTaken({"1", "2", "a:b"}) == "0");
  CHECK(WhatIsTaken({self + "x", "2", "a:b"}) == "0");
  CHECK(WhatIsTaken({self, "many", "a"}) == "refused");
  CHECK(WhatIsTaken({self, "-1", "a"}) == "refused");
  CHECK(WhatIsTaken({self, "2", "a"}) == "refused");
  CHECK(WhatIsTaken({self, "1", "a:b"}) == "refused");
}

TEST_CASE("without names, descriptors are called unknown, as sd_listen_fds_with_names(3) calls them") {
  const FirstPassed first;
  Say("LISTEN_PID", std::to_string(::getpid()));
  CHECK(TakePassedDescriptors()->empty());  // no number
  const auto take_one = [] {
    Say("LISTEN_PID", std::to_string(::getpid()));
    Say("LISTEN_FDS", "1");
    return TakePassedDescriptors();
  };
  CHECK(take_one().error().what == "cannot take the descriptors that systemd passed: Bad file descriptor");
  REQUIRE(::dup2(STDERR_FILENO, FirstPassed::kNumber) == FirstPassed::kNumber);
  const auto taken = take_one();
  REQUIRE(taken.has_value());
  REQUIRE(taken->size() == 1);
  CHECK(taken->front().name == "unknown");
  CHECK(::fcntl(taken->front().fd.Get(), F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("the watchdog interval is taken once, by the named process or by any") {
  Say("WATCHDOG_USEC", "5000000");
  CHECK(TakeWatchdogInterval() == 5'000'000);
  CHECK(TakeWatchdogInterval() == 0);
  Say("WATCHDOG_USEC", "5000000");
  Say("WATCHDOG_PID", std::to_string(::getpid()));
  CHECK(TakeWatchdogInterval() == 5'000'000);
  Say("WATCHDOG_USEC", "5000000");
  Say("WATCHDOG_PID", "1");
  CHECK(TakeWatchdogInterval() == 0);
  Say("WATCHDOG_USEC", "soon");
  CHECK(TakeWatchdogInterval() == 0);
}

TEST_CASE("a message arrives whole, with its descriptors") {
  // An abstract address, as in containers; notified.h has a file.
  const std::string name = "@xschedd-notify-" + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path);
  address.sun_path[0] = '\0';
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.Get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
  Say("NOTIFY_SOCKET", name);
  std::vector<UniqueFd> given;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  given.emplace_back(pipe[0]);
  given.emplace_back(pipe[1]);
  const auto manager = NotifySocket::FromEnvironment();
  ::unsetenv("NOTIFY_SOCKET");
  REQUIRE(manager.has_value());
  REQUIRE(manager->Send("FDSTORE=1\nFDNAME=a", given) == 0);

  char text[64] = {};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  iovec part{text, sizeof text - 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  REQUIRE(::recvmsg(socket.Get(), &message, MSG_CMSG_CLOEXEC) == 18);
  CHECK(std::string(text) == "FDSTORE=1\nFDNAME=a");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  REQUIRE(header != nullptr);
  REQUIRE(header->cmsg_type == SCM_RIGHTS);
  REQUIRE(header->cmsg_len == CMSG_LEN(2 * sizeof(int)));
  for (std::size_t i = 0; i < given.size(); ++i) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
    const UniqueFd received(number);
    CHECK(Inode(received.Get()) == Inode(given[i].Get()));
  }
}

TEST_CASE("a missing or dead service manager is just an error") {
  CHECK_FALSE(NotifySocket::FromEnvironment().has_value());
  Say("NOTIFY_SOCKET", "/nowhere/" + std::string(200, 'x'));
  CHECK(NotifySocket::FromEnvironment()->Send("READY=1", {}) == E2BIG);
  Say("NOTIFY_SOCKET", "/nowhere/notify");
  CHECK(NotifySocket::FromEnvironment()->Send("READY=1", {}) == ENOENT);
  ::unsetenv("NOTIFY_SOCKET");
  const test::Notified manager(nullptr);
  const auto socket = NotifySocket::FromEnvironment();
  CHECK(socket->Send("READY=1", std::vector<UniqueFd>(254)) == E2BIG);  // more than a message carries
  {
    const test::FewDescriptors none(0);
    CHECK(socket->Send("READY=1", {}) == EMFILE);
  }
  CHECK(socket->Send("READY=1", {}) == 0);
  CHECK(manager.Said() == std::vector<std::string>{"READY=1"});
}
