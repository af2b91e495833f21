// The two listening sockets: as root, as a user, beside another daemon, and from a service manager that passes wrong
// ones.
#include "daemon/connections/sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/daemon/as_user.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;
using test::Folder;

namespace {

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

UniqueFd BoundSocket(int domain, int type) {
  UniqueFd fd(::socket(domain, type | SOCK_CLOEXEC, 0));
  // The kernel chooses the name or port.
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(domain);
  if (domain == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (domain == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  const socklen_t size = domain == AF_UNIX ? sizeof(sa_family_t) : sizeof address;
  REQUIRE(::bind(fd.Get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(fd.Get(), 8) == 0);
  return fd;
}

std::vector<PassedDescriptor> Passed(std::string name, UniqueFd fd) {
  std::vector<PassedDescriptor> passed;
  passed.push_back({std::move(name), std::move(fd)});
  return passed;
}

std::string WhyNot(const std::string& folder, std::vector<PassedDescriptor> passed = {}) {
  const auto sockets = ListeningSockets::Open(folder, passed);
  REQUIRE_FALSE(sockets);
  CHECK(sockets.error().Line().find('\n') == std::string::npos);
  return sockets.error().Line();
}

}  // namespace

TEST_CASE("sockets have the promised modes, and a folder serves one daemon") {
  const Folder folder;
  const std::string inside = folder.Path() + "/run";
  std::vector<PassedDescriptor> none;
  {
    const mode_t before = ::umask(0077);  // as the unit has it
    auto sockets = ListeningSockets::Open(inside, none);
    ::umask(before);
    REQUIRE(sockets);
    const bool is_root = ::geteuid() == 0;
    CHECK(ModeOf(inside + "/client.sock") == (is_root ? 0666 : 0600));
    // The same socket, in a folder of its own.
    CHECK(std::filesystem::read_symlink(inside + "/client.sock") == "client/client.sock");
    CHECK(ModeOf(inside + "/client") == 0755);
    CHECK(std::distance(std::filesystem::directory_iterator(inside + "/client"), {}) == 1);
    CHECK(ModeOf(inside + "/admin.sock") == (is_root ? 0660 : 0600));
    CHECK(WhyNot(inside).find("another xschedd serves") != std::string::npos);
    sockets->Remove();
    CHECK_FALSE(std::filesystem::exists(inside + "/client.sock"));
    CHECK_FALSE(std::filesystem::exists(inside + "/admin.sock"));
    CHECK(std::filesystem::is_empty(inside + "/client"));  // containers may have it mounted
    sockets->Remove();                                     // once more does nothing
  }
  // The socket of an earlier release where the link is now.
  REQUIRE(::mknod((inside + "/client.sock").c_str(), S_IFSOCK | 0666, 0) == 0);
  // The sockets of a dead daemon are replaced.
  REQUIRE(ListeningSockets::Open(inside, none));
  CHECK(ListeningSockets::Open(inside, none));
}

TEST_CASE("a user's sockets are private, and a forbidden folder is reported with the remedy") {
  if (!test::CanBecomeUsers()) return;
  const Folder folder;
  const std::string own = folder.Path() + "/own";
  std::vector<PassedDescriptor> none;
  REQUIRE(::chmod(folder.Path().c_str(), 0777) == 0);
  {
    const test::AsUser nobody(test::kNobody);
    const auto sockets = ListeningSockets::Open(own, none);
    REQUIRE(sockets);
    CHECK(ModeOf(own + "/client.sock") == 0600);
    CHECK(ModeOf(own + "/admin.sock") == 0600);
  }
  std::filesystem::remove(own + "/client.sock");
  REQUIRE(::chown(own.c_str(), 0, 0) == 0);  // the lock is still the user's
  const test::AsUser nobody(test::kNobody);
  CHECK(WhyNot(own).find("check the permissions of the folder") != std::string::npos);
  CHECK(WhyNot("/proc/xschedd").find("give --runtime-dir") != std::string::npos);
}

TEST_CASE("a folder whose path is too long for a socket is reported with the remedy") {
  const Folder folder;
  CHECK(WhyNot(folder.Path() + "/" + std::string(100, 'x')).find("choose a shorter --runtime-dir") !=
        std::string::npos);
}

TEST_CASE("without descriptors for its sockets a daemon says so") {
  const Folder folder;
  const test::FewDescriptors few(1);  // for the lock
  CHECK(WhyNot(folder.Path()).find("raise LimitNOFILE") != std::string::npos);
}

TEST_CASE("only a pair of listening Unix stream sockets is taken from a service manager") {
  const Folder folder;
  SECTION("a pair, besides a stored descriptor") {
    auto passed = Passed("client", BoundSocket(AF_UNIX, SOCK_STREAM));
    passed.push_back({"admin", BoundSocket(AF_UNIX, SOCK_STREAM)});
    passed.push_back({"state", UniqueFd(::dup(STDERR_FILENO))});
    const int client = passed[0].fd.Get();
    const int admin = passed[1].fd.Get();
    auto sockets = ListeningSockets::Open(folder.Path(), passed);
    REQUIRE(sockets);
    CHECK(sockets->Client() == client);
    CHECK(sockets->Admin() == admin);
    REQUIRE(passed.size() == 1);
    CHECK(passed[0].name == "state");
    sockets->Remove();  // none of the files are ours
  }
  SECTION("a third one for metrics, which may be an internet socket") {
    const bool is_alone = GENERATE(false, true);
    std::vector<int> domains{AF_INET, AF_UNIX};
    if (UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)).IsValid()) domains.push_back(AF_INET6);
    for (const int domain : domains) {
      auto passed = Passed("metrics", BoundSocket(domain, SOCK_STREAM));
      const int metrics = passed[0].fd.Get();
      if (!is_alone) {
        passed.push_back({"client", BoundSocket(AF_UNIX, SOCK_STREAM)});
        passed.push_back({"admin", BoundSocket(AF_UNIX, SOCK_STREAM)});
      }
      auto sockets = ListeningSockets::Open(folder.Path(), passed);
      REQUIRE(sockets);
      CHECK(passed.empty());
      CHECK(std::filesystem::exists(folder.Path() + "/client.sock") == is_alone);  // those it makes itself then
      CHECK(sockets->TakeMetrics().Get() == metrics);
      CHECK_FALSE(sockets->TakeMetrics().IsValid());
      sockets->Remove();
    }
  }
  SECTION("wrong sockets") {
    std::vector<PassedDescriptor> passed;
    SECTION("internet socket") {
      passed = Passed("client", BoundSocket(AF_INET, SOCK_STREAM));
    }
    SECTION("packet socket") {
      passed = Passed("admin", BoundSocket(AF_UNIX, SOCK_SEQPACKET));
    }
    SECTION("not a socket") {
      passed = Passed("client", UniqueFd(::dup(STDERR_FILENO)));
    }
    SECTION("not listening") {
      passed = Passed("client", UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    }
    SECTION("two with one name") {
      passed = Passed("client", BoundSocket(AF_UNIX, SOCK_STREAM));
      passed.push_back({"client", BoundSocket(AF_UNIX, SOCK_STREAM)});
    }
    SECTION("two for metrics") {
      passed = Passed("metrics", BoundSocket(AF_INET, SOCK_STREAM));
      passed.push_back({"metrics", BoundSocket(AF_INET, SOCK_STREAM)});
    }
    SECTION("packet socket for metrics") {
      passed = Passed("metrics", BoundSocket(AF_UNIX, SOCK_SEQPACKET));
    }
    SECTION("socket for metrics of a family without HTTP") {
      passed = Passed("metrics", UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)));
    }
    SECTION("listening socket with an unknown name") {
      passed = Passed("another", BoundSocket(AF_UNIX, SOCK_STREAM));
    }
    CHECK(WhyNot(folder.Path(), std::move(passed)).find("unexpected socket") != std::string::npos);
  }
  SECTION("one of the two") {
    CHECK(WhyNot(folder.Path(), Passed("admin", BoundSocket(AF_UNIX, SOCK_STREAM))).find("enable both socket units") !=
          std::string::npos);
  }
}
