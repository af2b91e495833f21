// Connections before and around gRPC: the acceptor, the first bytes, the table of connections. The test plays gRPC.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/connections/acceptor.h"
#include "daemon/connections/handshake.h"
#include "tests/catch.h"
#include "tests/unit/daemon/connection_table.h"
#include "tests/unit/daemon/few_descriptors.h"

using namespace xschedd;
using std::chrono::milliseconds;
using test::kPlain;
using test::Pair;
using test::RunAWhile;
using test::RunUntil;
using test::Say;
using test::SayHelloOf;
using test::Table;

namespace {

constexpr milliseconds kLong{30'000};

// A listening socket without a file.
class Listening {
 public:
  Listening() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sun_family = AF_UNIX;
    const sockaddr* address = reinterpret_cast<const sockaddr*>(&address_);
    REQUIRE(::bind(fd_.Get(), address, sizeof(sa_family_t)) == 0);  // the kernel chooses an abstract name
    REQUIRE(::listen(fd_.Get(), 512) == 0);
    size_ = sizeof address_;
    REQUIRE(::getsockname(fd_.Get(), reinterpret_cast<sockaddr*>(&address_), &size_) == 0);
  }
  int Get() const { return fd_.Get(); }
  UniqueFd Connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address_), size_) != 0) return UniqueFd();
    return fd;
  }
  UniqueFd Accept() const { return UniqueFd(::accept4(fd_.Get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

 private:
  UniqueFd fd_;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

}  // namespace

TEST_CASE("the first bytes tell a shim from a plain client") {
  boost::asio::io_context io;
  Pair pair;
  std::optional<Result<FirstBytes>> first;
  const auto await = [&](milliseconds limit) {
    AwaitFirstBytes(io, std::move(pair.ours), limit, [&](Result<FirstBytes> said) { first = std::move(said); });
  };
  const PreambleHello hello = MakeHello();
  const std::string_view bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
  SECTION("a shim, in pieces") {
    await(kLong);
    for (const auto& [from, size] : {std::pair(0, 2), std::pair(2, 3), std::pair(5, 10)}) {
      Say(pair.peers, bytes.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(size)));
      RunUntil(io, [&, looks = 0]() mutable { return first.has_value() || ++looks > 10; });
      CHECK(!first);
    }
    Say(pair.peers, bytes.substr(15));
    Say(pair.peers, "then gRPC");
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    REQUIRE(*first);
    REQUIRE((*first)->hello);
    CHECK((*first)->hello->abi_version == hello.abi_version);
    char rest[64];
    REQUIRE(::recv((*first)->socket.Get(), rest, sizeof rest, 0) == 9);
    CHECK(std::string_view(rest, 9) == "then gRPC");
  }
  SECTION("a plain client, whose bytes stay unread") {
    Say(pair.peers, kPlain);
    await(kLong);
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    REQUIRE(*first);
    CHECK(!(*first)->hello);
    char all[64];
    CHECK(::recv((*first)->socket.Get(), all, sizeof all, 0) == static_cast<ssize_t>(kPlain.size()));
  }
  SECTION("a peer that sends nothing in time") {
    await(milliseconds(1));
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    CHECK(first->error().what == "the client sent no preamble in time");
    io.poll();  // cancelled waits report nothing
    char byte;
    CHECK(::recv(pair.peers.Get(), &byte, 1, 0) == 0);  // closed
  }
  SECTION("a shim that stops half-way") {
    Say(pair.peers, bytes.substr(0, 7));
    pair.peers.Reset();
    await(milliseconds(20));
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    CHECK(first->error().what == "the client sent no preamble in time");
  }
  SECTION("a peer whose bytes vanished is waited for") {
    const UniqueFd other(::dup(pair.ours.Get()));
    await(kLong);
    Say(pair.peers, "x");
    char byte;
    test::RunWith(io, [&] { CHECK(::recv(other.Get(), &byte, 1, 0) == 1); });
    CHECK(!first);
    Say(pair.peers, kPlain);
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    CHECK(first->has_value());
  }
  SECTION("bytes that arrive at the time limit are answered once") {
    const bool began = GENERATE(false, true);
    if (began) Say(pair.peers, bytes.substr(0, 2));
    await(milliseconds(1));
    if (began) io.poll();
    ::usleep(20'000);  // past the limit and the next check for more pieces
    if (!began) Say(pair.peers, kPlain);
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    CHECK((!began || !first->has_value()));
    first.reset();
    RunAWhile(io);
    CHECK(!first);
  }
  SECTION("a peer that has left") {
    pair.peers.Reset();
    await(kLong);
    REQUIRE(RunUntil(io, [&] { return first.has_value(); }));
    CHECK(first->error().what == "the client closed the connection before it sent anything");
  }
}

TEST_CASE("a welcome is sent whole or not at all") {
  const char token[16] = {'t'};
  Pair pair;
  SECTION("with shared memory") {
    const auto channel = Channel::Make();
    REQUIRE(channel);
    CHECK(SendWelcome(pair.ours.Get(), PreambleStatus::kOk, token, channel->get()));
  }
  SECTION("with a refusal") {
    CHECK(SendWelcome(pair.ours.Get(), PreambleStatus::kDraining, token, nullptr));
  }
  SECTION("to a closed peer") {
    pair.peers.Reset();
    CHECK(!SendWelcome(pair.ours.Get(), PreambleStatus::kOk, token, nullptr));
  }
  SECTION("to a peer that does not read") {
    const std::string much(4096, 'x');
    while (::send(pair.ours.Get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    CHECK(!SendWelcome(pair.ours.Get(), PreambleStatus::kOk, token, nullptr));
  }
}

TEST_CASE("the acceptor takes all waiting connections, and retries later if it cannot") {
  boost::asio::io_context io;
  Listening listening;
  std::vector<UniqueFd> accepted;
  Acceptor acceptor(io, listening.Get(), [&](UniqueFd socket) { accepted.push_back(std::move(socket)); });
  SECTION("more than one batch") {
    std::vector<UniqueFd> peers;
    for (int i = 0; i < 150; ++i)
      peers.push_back(listening.Connect());
    acceptor.Start();
    CHECK(RunUntil(io, [&] { return accepted.size() == 150; }));
  }
  SECTION("without descriptors it retries later") {
    const UniqueFd peer = listening.Connect();
    acceptor.Start();
    std::optional<test::FewDescriptors> none(std::in_place, 0);
    // It logs this once per retry, not as often as the socket is readable.
    io.run_for(milliseconds(50));
    CHECK(accepted.empty());
    none.reset();
    CHECK(RunUntil(io, [&] { return accepted.size() == 1; }));
    const UniqueFd other = listening.Connect();
    CHECK(RunUntil(io, [&] { return accepted.size() == 2; }));
  }
  SECTION("once stopped it accepts nothing, and the socket stays") {
    acceptor.Start();
    acceptor.Stop();
    const UniqueFd peer = listening.Connect();
    io.run_for(milliseconds(5));
    CHECK(accepted.empty());
    CHECK(listening.Accept().IsValid());
  }
  SECTION("stopped while waiting to retry") {
    const UniqueFd peer = listening.Connect();
    acceptor.Start();
    {
      const test::FewDescriptors none(0);
      io.run_for(milliseconds(20));
    }
    acceptor.Stop();
    io.run_for(milliseconds(5));
    CHECK(accepted.empty());
  }
}

TEST_CASE("a connection is known by gRPC's name for it, until it ends") {
  Table table;
  UniqueFd peer = table.Admit();
  const int fd = table.adopted[0].Get();
  REQUIRE(table.Find(fd) != nullptr);
  CHECK(table.Find(fd)->peer.pid == ::getpid());
  const std::string name = "fd:" + std::to_string(fd);
  for (const std::string& other :
       {std::string(), std::string("unix:"), std::string("fd:"), std::string("fd:x"), name + "x",
        "fd:" + std::to_string(fd + 1), "xfd:" + std::to_string(fd), name + "99999999999"}) {
    INFO(other);
    CHECK(table.connections.Find(other, false) == nullptr);
    CHECK(table.connections.Find(other, true) == nullptr);
  }
  SECTION("the peer closes") {
    peer.Reset();
    CHECK(RunUntil(table.io, [&] { return table.gone.size() == 1; }));
  }
  SECTION("we close") {
    table.connections.Close(fd);
    char byte;
    const ssize_t size = ::recv(peer.Get(), &byte, 1, 0);
    // The kernel says it so where what the peer has sent was not read yet.
    CHECK((size == 0 || (size == -1 && errno == ECONNRESET)));
  }
  SECTION("all are closed") {
    table.connections.CloseAll();
  }
  CHECK(table.gone == std::vector<int>{fd});
  CHECK(table.Find(fd) == nullptr);
  table.connections.Close(fd);  // closing again, or an unknown one, does nothing
  RunAWhile(table.io);
  CHECK(table.gone.size() == 1);
}

TEST_CASE("a reused descriptor number is another connection") {
  Table table;
  const UniqueFd first = table.Admit();
  const int fd = table.adopted[0].Get();
  const auto former = table.Find(fd);
  Pair next;
  Say(next.peers, kPlain);
  table.connections.Accept(std::move(next.ours), false);
  // gRPC closes, and the kernel reuses the number before the end is seen.
  const UniqueFd unseen(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
  table.adopted.clear();
  REQUIRE(RunUntil(table.io, [&] { return !table.adopted.empty(); }));
  REQUIRE(table.adopted[0].Get() == fd);
  CHECK(table.gone == std::vector<int>{fd});
  CHECK(table.Find(fd) != nullptr);
  CHECK(table.Find(fd) != former);
}

TEST_CASE("a peer that leaves before it is accepted leaves nothing behind") {
  Table table;
  table.AllowConnections(1);
  for (int i = 0; i < 3; ++i) {
    Pair pair;
    table.connections.Accept(std::move(pair.ours), false);
    pair.peers.Reset();
    RunAWhile(table.io);
  }
  CHECK(table.adopted.empty());
  CHECK(table.gone.empty());
  const UniqueFd next = table.Admit();  // the quota is free again
  CHECK(table.refused.empty());
  SECTION("over the quota") {
    Pair pair;
    SayHelloOf(pair.peers);
    table.connections.Accept(std::move(pair.ours), false);
    PreambleWelcome welcome{};
    REQUIRE(RunUntil(table.io, [&] { return ::recv(pair.peers.Get(), &welcome, sizeof welcome, MSG_DONTWAIT) > 0; }));
    CHECK(welcome.status == PreambleStatus::kQuota);
    CHECK(table.refused.size() == 1);
    CHECK(table.adopted.size() == 1);
  }
  SECTION("an administrator is admitted anyway") {
    Pair pair;
    Say(pair.peers, kPlain);
    table.connections.Accept(std::move(pair.ours), true);
    CHECK(RunUntil(table.io, [&] { return table.adopted.size() == 2; }));
    CHECK(table.Find(table.adopted[1].Get())->is_admin);
  }
}

TEST_CASE("no connection is accepted once all are being closed") {
  Table table;
  Pair pair;
  table.connections.Accept(std::move(pair.ours), false);
  table.connections.CloseAll();
  Say(pair.peers, kPlain);
  char byte;
  CHECK(RunUntil(table.io, [&] { return ::recv(pair.peers.Get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  CHECK(table.adopted.empty());
}

TEST_CASE("without descriptors a connection is refused with the remedy") {
  Table table;
  Pair pair;
  {
    Pair unknown;
    const test::FewDescriptors none(0);  // not even for its pidfd, so the peer is unknown
    table.connections.Accept(std::move(unknown.ours), false);
    CHECK(table.refused.empty());
  }
  SECTION("of a plain client") {
    Say(pair.peers, kPlain);
    table.connections.Accept(std::move(pair.ours), false);
    const test::FewDescriptors none(0);
    REQUIRE(RunUntil(table.io, [&] { return !table.refused.empty(); }));
  }
  SECTION("of a shim, whose shared memory needs some") {
    SayHelloOf(pair.peers);
    table.connections.Accept(std::move(pair.ours), false);
    const test::FewDescriptors none(0);
    REQUIRE(RunUntil(table.io, [&] { return !table.refused.empty(); }));
    PreambleWelcome welcome{};
    REQUIRE(::recv(pair.peers.Get(), &welcome, sizeof welcome, 0) == static_cast<ssize_t>(sizeof welcome));
    CHECK(welcome.status == PreambleStatus::kQuota);
  }
  CHECK(table.refused[0].find("raise LimitNOFILE") != std::string::npos);
  CHECK(table.adopted.empty());
}

TEST_CASE("a shim is welcomed, or refused while the daemon is disabled") {
  Table table;
  Pair pair;
  const bool is_disabled = GENERATE(false, true);
  if (is_disabled) table.connections.AcceptShims(false);
  SayHelloOf(pair.peers);
  SECTION("that waits for the answer") {
    table.connections.Accept(std::move(pair.ours), false);
    PreambleWelcome welcome{};
    const auto answered = [&] { return ::recv(pair.peers.Get(), &welcome, sizeof welcome, MSG_DONTWAIT) > 0; };
    REQUIRE(RunUntil(table.io, answered));
    CHECK(welcome.status == (is_disabled ? PreambleStatus::kDraining : PreambleStatus::kOk));
    CHECK(RunUntil(table.io, [&] { return table.adopted.size() == (is_disabled ? 0 : 1); }));
  }
  SECTION("that has left meanwhile") {
    table.connections.Accept(std::move(pair.ours), false);
    pair.peers.Reset();
    RunAWhile(table.io);
    CHECK(table.adopted.empty());
  }
  CHECK(table.refused.size() == (is_disabled ? 1 : 0));
}

TEST_CASE("a shim of an incompatible release is refused, and the log says what to install") {
  Table table;
  Pair pair;
  PreambleHello hello = MakeHello();
  std::string remedy;
  SECTION("of the next release, which retries with our version: nothing is logged") {
    hello.abi_version = abi::Newest().version + 1;
  }
  SECTION("of a much newer release") {
    hello.abi_version = abi::Newest().version + 2;
    remedy = "install a daemon of its shim's release";
  }
  SECTION("of a much older release") {
    hello.abi_version = abi::Spoken().front().version - 1;
    remedy = "install the shim of this daemon's release";
  }
  SECTION("of the same version with another layout") {
    remedy = "install shim and daemon of one release";
  }
  hello.layout_hash ^= 1;
  Say(pair.peers, {reinterpret_cast<const char*>(&hello), sizeof hello});
  table.connections.Accept(std::move(pair.ours), false);
  PreambleWelcome welcome{};
  REQUIRE(RunUntil(table.io, [&] { return ::recv(pair.peers.Get(), &welcome, sizeof welcome, MSG_DONTWAIT) > 0; }));
  CHECK(welcome.status == PreambleStatus::kVersionMismatch);
  CHECK(table.adopted.empty());
  if (remedy.empty()) {
    CHECK(table.refused.empty());
  } else {
    REQUIRE(table.refused.size() == 1);
    CHECK(table.refused[0].find(remedy) != std::string::npos);
  }
}

TEST_CASE("a connection held open for its refusal ends soon and does not block others") {
  Table table;
  table.AllowConnections(1);
  const UniqueFd first = table.Admit();
  const UniqueFd too_many = table.Admit();
  const int refused = table.adopted[1].Get();
  REQUIRE(table.Find(refused) != nullptr);
  CHECK_FALSE(table.Find(refused)->refusal.ok());
  REQUIRE(RunUntil(table.io, [&] { return !table.gone.empty(); }));
  CHECK(table.gone == std::vector<int>{refused});
  CHECK(table.Find(refused) == nullptr);
  CHECK(table.Find(table.adopted[0].Get()) != nullptr);
}

TEST_CASE("a client is gone when its process dies, not when its socket closes") {
  Table table;
  const Listening listening;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A child of the client keeps the socket; the client itself is killed.
    const UniqueFd socket = listening.Connect();
    [[maybe_unused]] const ssize_t sent = ::send(socket.Get(), kPlain.data(), kPlain.size(), MSG_NOSIGNAL);
    const pid_t heir = ::fork();
    if (heir == 0) {
      ::alarm(60);
      char byte;
      ::recv(socket.Get(), &byte, 1, 0);  // until the daemon closes
      ::_exit(0);
    }
    for (;;)
      ::pause();
  }
  REQUIRE(child > 0);
  UniqueFd socket;
  REQUIRE(RunUntil(table.io, [&] {
    socket = listening.Accept();
    return socket.IsValid();
  }));
  table.connections.Accept(std::move(socket), false);
  REQUIRE(RunUntil(table.io, [&] { return table.adopted.size() == 1; }));
  CHECK(table.Find(table.adopted[0].Get())->peer.pid == child);
  CHECK(table.gone.empty());
  ::kill(child, SIGKILL);
  CHECK(RunUntil(table.io, [&] { return table.gone.size() == 1; }));
  ::waitpid(child, nullptr, 0);
}
