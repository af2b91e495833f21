// The daemon's own metrics socket: where it listens, what it replaces, and what it leaves alone.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "daemon/metrics/metrics_listen.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;
using Kind = ListenAddress::Kind;

namespace {

ListenAddress UnixAt(const std::string& path) {
  return {Kind::kUnix, path, 0};
}

// Connects without waiting. Invalid: the connection was not accepted.
UniqueFd ConnectTo(int listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  UniqueFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (address.ss_family == AF_UNIX) fd.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return UniqueFd();
  return fd;
}

std::string WhyNot(const ListenAddress& address) {
  const auto socket = Listen(address);
  REQUIRE_FALSE(socket);
  CHECK_FALSE(socket.error().remedy.empty());
  CHECK(socket.error().Line().find('\n') == std::string::npos);
  return socket.error().Line();
}

bool HasIpv6() {
  return Listen({Kind::kIpv6, "::1", 0}).has_value();
}

}  // namespace

TEST_CASE("it listens where it is configured to, and reports the address in the same notation") {
  const test::Folder folder;
  std::vector<ListenAddress> addresses{{Kind::kIpv4, "127.0.0.1", 0}, UnixAt(folder.Path() + "/metrics.sock")};
  if (HasIpv6()) addresses.push_back({Kind::kIpv6, "::1", 0});
  for (const ListenAddress& address : addresses) {
    INFO(address.host);
    const auto socket = Listen(address);
    REQUIRE(socket);
    CHECK(ConnectTo(socket->Get()).IsValid());
    const auto said = ParseListenAddress(ListensAt(socket->Get()));
    REQUIRE(said);
    CHECK(said->kind == address.kind);
    CHECK(said->host == address.host);
    CHECK((said->port != 0) == (address.kind != Kind::kUnix));
    // The port that the kernel chose is taken now.
    if (address.kind != Kind::kUnix) CHECK(WhyNot(*said).find("choose another port") != std::string::npos);
  }
  CHECK(ListensAt(-1) == "an unknown address");
}

TEST_CASE("every local user may connect, and a dead daemon's socket is replaced") {
  const test::Folder folder;
  const std::string path = folder.Path() + "/metrics.sock";
  for (int daemons = 0; daemons < 2; ++daemons) {
    const auto socket = Listen(UnixAt(path));
    REQUIRE(socket);
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0666);
    CHECK(ConnectTo(socket->Get()).IsValid());
  }
}

TEST_CASE("a live socket, or a file that is not a socket, stays") {
  const test::Folder folder;
  const std::string path = folder.Path() + "/metrics.sock";
  SECTION("a file") {
    std::ofstream(path) << "precious";
    CHECK(WhyNot(UnixAt(path)).find("exists and is not a socket; move it away") != std::string::npos);
    std::ifstream file(path);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "precious");
  }
  SECTION("a server") {
    const auto other = Listen(UnixAt(path));
    REQUIRE(other);
    CHECK(WhyNot(UnixAt(path)).find("another process already listens on " + path) != std::string::npos);
    CHECK(ConnectTo(other->Get()).IsValid());
  }
  SECTION("a server with a full queue") {
    const auto other = Listen(UnixAt(path));
    REQUIRE(other);
    REQUIRE(::listen(other->Get(), 0) == 0);
    std::vector<UniqueFd> waiting;
    do {
      waiting.push_back(ConnectTo(other->Get()));
      REQUIRE(waiting.size() < 1'000);
    } while (waiting.back().IsValid());
    CHECK(WhyNot(UnixAt(path)).find("another process already listens on " + path) != std::string::npos);
    CHECK(UniqueFd(::accept4(other->Get(), nullptr, nullptr, SOCK_CLOEXEC)).IsValid());
    CHECK(ConnectTo(other->Get()).IsValid());
  }
}

TEST_CASE("if it cannot listen, it says why and what to do") {
  const test::Folder folder;
  CHECK(WhyNot(UnixAt(folder.Path() + "/nowhere/metrics.sock")).find("No such file") != std::string::npos);
  // In TEST-NET-1, which no interface has.
  CHECK(WhyNot({Kind::kIpv4, "192.0.2.1", 0}).find("cannot bind 192.0.2.1 port 0") != std::string::npos);
  const test::FewDescriptors none(0);
  CHECK(WhyNot({Kind::kIpv4, "127.0.0.1", 0}).find("Too many open files") != std::string::npos);
}
