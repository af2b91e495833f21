// Metrics over HTTP, with connections in an order that the test controls: too many of them, peers that do not read, no
// descriptors, and an end half-way. A real daemon's answers are tested in tests/integration/metrics.
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/metrics/metrics_http.h"
#include "daemon/metrics/metrics_listen.h"
#include "tests/catch.h"
#include "tests/unit/daemon/few_descriptors.h"
#include "tests/unit/daemon/loop.h"
#include "tests/unit/metrics/some_daemon.h"

using namespace xschedd;
using test::RunAWhile;
using test::RunUntil;
using test::Say;

namespace {

constexpr std::string_view kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kPost = "POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

// An answer is whole or empty, never cut short.
void CheckWholeOrNothing(const std::string& answer) {
  if (answer.empty()) return;
  const std::size_t body = answer.find("\r\n\r\n");
  const std::size_t length = answer.find("Content-Length: ");
  REQUIRE(body != std::string::npos);
  REQUIRE(length < body);
  CHECK(std::stoul(answer.substr(length + 16)) == answer.size() - body - 4);
}

struct Served {
  Served() { Start(); }
  ~Served() {
    http.Stop();
    collector().Stop();
    RunAWhile(io());
  }

  boost::asio::io_context& io() { return daemon.io; }
  MetricsCollector& collector() { return daemon.collector; }

  void Start() {
    auto listening = Listen({ListenAddress::Kind::kIpv4, "127.0.0.1", 0});
    REQUIRE(listening);
    listens_at = listening->Get();
    http.Start(std::move(*listening));
  }

  UniqueFd Connect() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(listens_at, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    return fd;
  }

  // Everything the peer sends until it closes.
  std::string AnswerTo(const UniqueFd& client) {
    std::string answer;
    const bool ended = RunUntil(io(), [&] {
      char bytes[4096];
      ssize_t size = 0;
      while ((size = ::recv(client.Get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        answer.append(bytes, static_cast<std::size_t>(size));
      return size == 0 || errno == ECONNRESET;
    });
    CHECK(ended);
    return answer;
  }

  // Checks that requests are still served.
  void CheckServes() {
    const UniqueFd client = Connect();
    Say(client, kGet);
    const std::string answer = AnswerTo(client);
    CHECK(answer.starts_with("HTTP/1.1 200 "));
    CHECK(answer.find("\nxschedd_clients 0\n") != std::string::npos);
    CheckWholeOrNothing(answer);
  }

  test::SomeDaemon daemon;
  MetricsHttp http{daemon.io, daemon.collector};
  int listens_at = -1;
};

}  // namespace

TEST_CASE("a new connection displaces the oldest, whatever the oldest waits for") {
  Served served;
  UniqueFd oldest = served.Connect();
  bool is_refused = false;
  SECTION("it has sent nothing") {
    Say(oldest, "GET /met");
  }
  SECTION("it waits for the next count") {
    served.CheckServes();  // after which the collector pauses
    Say(oldest, kGet);
  }
  SECTION("it was refused, and stays") {
    Say(oldest, kPost);
    CHECK(served.AnswerTo(oldest).starts_with("HTTP/1.1 405 "));
    is_refused = true;
  }
  RunAWhile(served.io());
  std::vector<UniqueFd> others;
  for (std::size_t i = 0; i < MetricsHttp::kMaxConnections; ++i)
    others.push_back(served.Connect());
  const std::string answer = served.AnswerTo(oldest);
  CHECK((!is_refused || answer.empty()));
  CheckWholeOrNothing(answer);
  // The later ones are served.
  Say(others.back(), kGet);
  CHECK(served.AnswerTo(others.back()).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a peer that leaves before the answer does no harm") {
  Served served;
  const linger at_once{1, 0};  // with a reset
  for (const std::string_view said : {std::string_view(), kGet.substr(0, 9), kGet, kPost}) {
    UniqueFd client = served.Connect();
    Say(client, said);
    RunAWhile(served.io());
    REQUIRE(::setsockopt(client.Get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    client.Reset();
    RunAWhile(served.io());
    served.CheckServes();
  }
}

TEST_CASE("a refused peer is not read for long") {
  Served served;
  const UniqueFd client = served.Connect();
  Say(client, kPost);
  CHECK(served.AnswerTo(client).starts_with("HTTP/1.1 405 "));
  SECTION("and sends nothing more") {}
  SECTION("and sends without end") {
    const std::string much(100'000, 'x');
    ::send(client.Get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  // The kernel answers bytes to a closed socket with a reset.
  CHECK(RunUntil(served.io(), [&] { return ::send(client.Get(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0; }));
  served.CheckServes();
}

TEST_CASE("without descriptors connections wait, and are served once there are some") {
  Served served;
  const UniqueFd client = served.Connect();
  Say(client, kGet);
  std::optional<test::FewDescriptors> none(std::in_place, 0);
  RunAWhile(served.io());
  SECTION("in the end") {
    none.reset();
    CHECK(served.AnswerTo(client).starts_with("HTTP/1.1 200 "));
  }
  SECTION("unless it is switched off meanwhile") {
    served.http.Stop();
    none.reset();
    CHECK(served.AnswerTo(client).empty());
  }
}

TEST_CASE("connections beyond the rate wait, and all are closed in the end") {
  Served served;
  std::vector<UniqueFd> clients;
  // 64 are accepted at once, the others at a rate.
  for (int i = 0; i < 100; ++i) {
    clients.push_back(served.Connect());
    Say(clients.back(), "GET / HTTP/1.1\r\n\r\n");
    if (i % 8 == 0) RunAWhile(served.io());
  }
  SECTION("with an answer, or because it was displaced") {
    for (const UniqueFd& client : clients)
      CheckWholeOrNothing(served.AnswerTo(client));
    served.CheckServes();
  }
  SECTION("unless it is switched off meanwhile") {
    const bool is_due = GENERATE(false, true);
    if (is_due) ::usleep(60'000);  // when it is about to accept the next
    test::RunWith(served.io(), [&] { served.http.Stop(); });
    for (const UniqueFd& client : clients)
      CheckWholeOrNothing(served.AnswerTo(client));
  }
}

TEST_CASE("a connection accepted elsewhere is not missed") {
  Served served;
  const UniqueFd client = served.Connect();
  UniqueFd taken;
  test::RunWith(served.io(), [&] { taken.Reset(::accept4(served.listens_at, nullptr, nullptr, SOCK_CLOEXEC)); });
  CHECK(taken.IsValid());
  served.CheckServes();
}

TEST_CASE("switching off closes all connections at once; switched on again, it serves as before") {
  Served served;
  CHECK(served.http.IsServing());
  std::vector<UniqueFd> clients;
  const std::string_view all_said[] = {"", "GET /m", kGet, kPost};
  for (const std::string_view said : all_said) {
    clients.push_back(served.Connect());
    Say(clients.back(), said);
  }
  SECTION("while they wait") {
    RunAWhile(served.io());
    served.http.Stop();
  }
  SECTION("while their answers are written") {
    served.CheckServes();  // delays the next count, which they ask for first
    RunAWhile(served.io());
    bool stopped = false;
    served.collector().Collect(MetricFormat::kPrometheus, [&](const auto&) {
      served.http.Stop();
      stopped = true;
    });
    CHECK(RunUntil(served.io(), [&] { return stopped; }));
  }
  SECTION("while they are answered") {
    // It asks before them, so it is answered before them.
    bool stopped = false;
    served.collector().Collect(MetricFormat::kPrometheus, [&](const auto&) {
      served.http.Stop();
      stopped = true;
    });
    CHECK(RunUntil(served.io(), [&] { return stopped; }));
  }
  SECTION("while it is about to accept") {
    RunAWhile(served.io());
    clients.push_back(served.Connect());
    test::RunWith(served.io(), [&] { served.http.Stop(); });
  }
  SECTION("because the daemon stops") {
    served.collector().Stop();
    served.http.Stop();
  }
  CHECK_FALSE(served.http.IsServing());
  CHECK(served.http.Address().empty());
  for (const UniqueFd& client : clients)
    CheckWholeOrNothing(served.AnswerTo(client));
  RunAWhile(served.io());
  served.Start();
  CHECK(served.http.IsServing());
  CHECK(served.http.Address().starts_with("127.0.0.1:"));
}

TEST_CASE("started on another socket, it no longer serves the old one") {
  Served served;
  const UniqueFd client = served.Connect();
  const std::string before = served.http.Address();
  served.Start();
  CHECK(served.http.Address() != before);
  CHECK(served.AnswerTo(client).empty());
  served.CheckServes();
}

TEST_CASE("after counting has stopped, no request is answered and none is left waiting") {
  Served served;
  served.collector().Stop();
  const UniqueFd client = served.Connect();
  Say(client, kGet);
  CHECK(served.AnswerTo(client).empty());
}
