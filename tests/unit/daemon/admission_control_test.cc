// Admission of client traffic: turns between users, how much is admitted, and a relay that loses nothing.
#include "daemon/connections/admission_control.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "daemon/connections/fair_turns.h"
#include "daemon/connections/socket_relay.h"
#include "tests/catch.h"
#include "tests/unit/daemon/loop.h"

using namespace xschedd;
using std::chrono::milliseconds;
using test::RunUntil;

namespace {

constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;
constexpr std::uint64_t kMillisecond = 1'000'000;

std::string Order(FairTurns<char>& turns, std::uint64_t cost) {
  std::string order;
  while (const auto next = turns.Next()) {
    order += next->second;
    turns.Charge(next->first, cost);
  }
  return order;
}

std::pair<UniqueFd, UniqueFd> MakePair() {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  return {UniqueFd(pair[0]), UniqueFd(pair[1])};
}

// A relay whose sockets' other ends the test holds.
struct AdmissionWorld {
  explicit AdmissionWorld(bool is_admin) {
    auto [client, clients] = MakePair();
    auto [grpc, grpcs] = MakePair();
    client_end = std::move(clients);
    grpc_end = std::move(grpcs);
    relay = std::make_shared<SocketRelay>(
        io, std::move(client), std::move(grpc), is_admin ? nullptr : &admission, kAlice,
        SocketRelay::Callbacks{.ended = [this] { ++ended; }, .pause = [this] { return pause; }});
    relay->Start();
  }
  ~AdmissionWorld() {
    relay->Stop();
    admission.Stop();
    io.restart();
    io.poll();
  }

  boost::asio::io_context io;
  AdmissionControl admission{io};
  UniqueFd client_end;
  UniqueFd grpc_end;
  int ended = 0;
  milliseconds pause{0};
  std::shared_ptr<SocketRelay> relay;
};

// Writes `text` into one end and reads it from the other in pieces of `piece`.
std::string Through(AdmissionWorld& world, const UniqueFd& from, const UniqueFd& to, const std::string& text,
                    std::size_t piece) {
  std::string got;
  std::size_t said = 0;
  std::string bytes(piece, '\0');
  const bool all = RunUntil(world.io, [&] {
    const ssize_t sent = ::send(from.Get(), text.data() + said, text.size() - said, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) said += static_cast<std::size_t>(sent);
    const ssize_t size = ::recv(to.Get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) got.append(bytes, 0, static_cast<std::size_t>(size));
    return got.size() >= text.size();
  });
  CHECK(all);
  return got;
}

std::string Noise(std::size_t size) {
  std::mt19937 random(4711);
  std::string text(size, '\0');
  std::generate(text.begin(), text.end(), [&] { return static_cast<char>(random()); });
  return text;
}

}  // namespace

TEST_CASE("users take turns, and each user's items keep their order") {
  FairTurns<char> turns;
  for (const char item : {'a', 'b', 'c', 'd'})
    turns.Add(kAlice, item);
  for (const char item : {'1', '2'})
    turns.Add(kBob, item);
  CHECK(Order(turns, 10) == "a1b2cd");
  CHECK(turns.IsEmpty());
  CHECK_FALSE(turns.Next());
}

TEST_CASE("a heavy user waits, a newcomer does not, and idle users save up nothing") {
  FairTurns<char> turns;
  SECTION("a turn's cost is known later") {
    turns.Add(kAlice, 'a');
    turns.Add(kBob, '1');
    turns.Charge(kAlice, 25);
    for (const char item : {'b', 'c'})
      turns.Add(kAlice, item);
    for (const char item : {'2', '3', '4'})
      turns.Add(kBob, item);
    CHECK(Order(turns, 10) == "123a4bc");
  }
  SECTION("a user that was quiet for long gets as much as others") {
    for (int i = 0; i < 100; ++i)
      turns.Add(kAlice, 'a');
    for (int i = 0; i < 90; ++i) {
      turns.Next();
      turns.Charge(kAlice, 10);
    }
    for (const char item : {'1', '2', '3'})
      turns.Add(kBob, item);
    CHECK(Order(turns, 10).substr(0, 6) == "1a2a3a");
  }
  SECTION("thousands of departed users are forgotten, but a debt is not") {
    turns.Charge(kAlice, 100);
    for (uid_t uid = 5'000; uid < 10'000; ++uid) {
      turns.Add(uid, 'x');
      turns.Next();
    }
    turns.Add(kAlice, 'a');
    turns.Add(kBob, '1');
    CHECK(Order(turns, 10) == "1a");
  }
}

TEST_CASE("the places of a user take turns in the user's turns, however many they are") {
  FairTurns<char> turns;
  const Principal one(0, "container 1");
  const Principal two(0, "container 2");
  SECTION("two pods of root, of which one asks for much") {
    for (const char item : {'a', 'b', 'c', 'd'})
      turns.Add(one, item);
    for (const char item : {'1', '2'})
      turns.Add(two, item);
    CHECK(Order(turns, 10) == "a1b2cd");
  }
  SECTION("a hundred places of one user beside another user's one") {
    for (int i = 0; i < 100; ++i)
      turns.Add({kAlice, "container " + std::to_string(i)}, 'a');
    for (int i = 0; i < 4; ++i)
      turns.Add(kBob, '1');
    CHECK(Order(turns, 10).substr(0, 8) == "a1a1a1a1");
  }
  SECTION("what one pod caused does not delay another") {
    for (const Principal& pod : {one, two})
      turns.Add(pod, 'x');
    turns.Charge(one, 1'000);
    turns.Charge(one, 1'000);
    CHECK(turns.Next()->first == two);
    CHECK(turns.Next()->first == one);
  }
  SECTION("places that come and go are forgotten, but a debt is not") {
    turns.Charge(one, 100);
    for (int i = 0; i < 5'000; ++i) {
      turns.Add({0, "container x" + std::to_string(i)}, 'x');
      turns.Next();
    }
    turns.Add(one, 'a');
    turns.Add(two, '1');
    CHECK(Order(turns, 10) == "1a");
  }
}

TEST_CASE("idle users are forgotten, and waiting users still get their turn") {
  FairTurns<char> turns;
  turns.Charge(kAlice, 10);
  turns.Add(kAlice, 'a');
  for (uid_t uid = 5'000; uid < 10'000; ++uid) {
    turns.Add(uid, 'x');
    REQUIRE(turns.Next()->first == uid);
  }
  CHECK(Order(turns, 10) == "a");
}

TEST_CASE("a share of the processor has limited credit, and a debt is paid back") {
  ProcessorShare share(0.5, 10.0 * kMillisecond);
  CHECK(share.DebtNs(1) == 0);
  share.Spend(4 * kMillisecond, 2);
  CHECK(share.DebtNs(3) == 0);
  share.Spend(16 * kMillisecond, 4);
  CHECK(std::llround(share.DebtNs(4) / 1e6) == 20);
  CHECK(std::llround(share.DebtNs(4 + 10 * kMillisecond) / 1e6) == 10);
  CHECK(share.DebtNs(4 + 20 * kMillisecond + 2) == 0);
  CHECK(share.DebtNs(1'000 * kMillisecond) == 0);
  share.Spend(11 * kMillisecond, 1'000 * kMillisecond);  // no more than the limit was saved up
  CHECK(std::llround(share.DebtNs(1'000 * kMillisecond) / 1e6) == 2);
  CHECK(std::llround(share.DebtNs(999 * kMillisecond) / 1e6) == 2);  // an older time gives nothing
}

TEST_CASE("one user's flood does not make another wait") {
  boost::asio::io_context io;
  AdmissionControl admission(io);
  std::vector<uid_t> order;
  for (int i = 0; i < 200; ++i) {
    admission.Await(kAlice, [&] {
      order.push_back(kAlice);
      return 1 * kMillisecond;
    });
  }
  admission.Await(kBob, [&] {
    order.push_back(kBob);
    return 1 * kMillisecond;
  });
  REQUIRE(RunUntil(io, [&] { return std::find(order.begin(), order.end(), kBob) != order.end(); }));
  CHECK(std::find(order.begin(), order.end(), kBob) - order.begin() <= 1);
  admission.Stop();
  const std::size_t before = order.size();
  io.restart();
  io.run_for(milliseconds(5));
  CHECK(order.size() == before);
}

TEST_CASE("admitted work is paid for before more is admitted") {
  boost::asio::io_context io;
  AdmissionControl admission(io);
  const std::uint64_t began = MonotonicNs();
  int turns = 0;
  for (int i = 0; i < 2; ++i) {
    admission.Await(kAlice, [&] {
      ++turns;
      return 20 * kMillisecond;
    });
  }
  bool others_ran = false;
  REQUIRE(RunUntil(io, [&] { return turns == 1; }));
  boost::asio::post(io, [&] { others_ran = true; });
  admission.Charge(kAlice, 10 * kMillisecond);  // more than the turn had reported
  REQUIRE(RunUntil(io, [&] { return turns == 2; }));
  CHECK(others_ran);
  CHECK(MonotonicNs() - began >= 40 * kMillisecond);  // 20 + 10 less the 10 saved up, at half a core
}

TEST_CASE("after admission control is stopped, no user gets a turn") {
  boost::asio::io_context io;
  AdmissionControl admission(io);
  int turns = 0;
  const int last = GENERATE(1, 4);  // in the middle of a round, and at its end
  for (int i = 0; i < 10; ++i) {
    admission.Await(kAlice, [&] {
      if (++turns == last) admission.Stop();
      return std::uint64_t{0};
    });
  }
  REQUIRE(RunUntil(io, [&] { return turns == last; }));
  admission.Await(kBob, [&] {
    ++turns;
    return std::uint64_t{0};
  });
  test::RunAWhile(io);
  CHECK(turns == last);
}

TEST_CASE("a relay passes all bytes unchanged both ways, however slowly they are read") {
  const bool is_admin = GENERATE(true, false);
  AdmissionWorld world(is_admin);
  const std::string little = Noise(70'000);
  CHECK(Through(world, world.client_end, world.grpc_end, little, 100'000) == little);
  const std::string much = Noise(1'500'000);
  CHECK(Through(world, world.grpc_end, world.client_end, much, 9'000) == much);
  CHECK(world.ended == 0);
}

TEST_CASE("a relay ends once, when either side does") {
  AdmissionWorld world(GENERATE(true, false));
  SECTION("the client") {
    world.client_end.Reset();
  }
  SECTION("gRPC") {
    world.grpc_end.Reset();
  }
  SECTION("gRPC, while bytes wait for buffer space") {
    const std::string much = Noise(3'000'000);
    CHECK(::send(world.grpc_end.Get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
    world.io.run_for(milliseconds(5));
    world.client_end.Reset();
  }
  REQUIRE(RunUntil(world.io, [&] { return world.ended > 0; }));
  world.relay->Stop();
  world.io.restart();
  world.io.run_for(milliseconds(5));
  CHECK(world.ended == 1);
}

TEST_CASE("a stopped relay carries nothing, whatever it was waiting for") {
  AdmissionWorld world(GENERATE(true, false));
  const std::string much = Noise(3'000'000);
  bool is_due = false;
  SECTION("for the client") {
    is_due = GENERATE(true, false);
    if (is_due) test::Say(world.client_end, "x");
  }
  SECTION("for gRPC") {
    is_due = GENERATE(true, false);
    if (is_due) test::Say(world.grpc_end, "x");
  }
  SECTION("for buffer space") {
    CHECK(::send(world.grpc_end.Get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
    test::RunAWhile(world.io);
    is_due = GENERATE(true, false);
    char bytes[4096];
    while (is_due && ::recv(world.client_end.Get(), bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
  }
  SECTION("for the user's quota") {
    world.pause = milliseconds(5);
    test::Say(world.client_end, "x");
    test::RunAWhile(world.io);
    is_due = GENERATE(true, false);
    if (is_due) ::usleep(20'000);  // the pause is over, and the loop has not seen it
  }
  test::RunWith(world.io, [&] { world.relay->Stop(); });
  test::RunAWhile(world.io);
  CHECK(world.ended == 0);
  CHECK(test::IsClosed(world.client_end));
  CHECK(test::IsClosed(world.grpc_end));
}

TEST_CASE("an expensive client is read later, an administrator at once") {
  const bool is_admin = GENERATE(true, false);
  AdmissionWorld world(is_admin);
  world.relay->Charge(205 * kMillisecond);  // 200 were saved up; a twentieth of a core pays back 5 in 100 ms
  const std::uint64_t began = MonotonicNs();
  CHECK(Through(world, world.client_end, world.grpc_end, "late", 10) == "late");
  const bool was_late = MonotonicNs() - began >= 100 * kMillisecond;
  CHECK((is_admin || was_late));
}

TEST_CASE("a user over its message quota is not read until it may send again") {
  AdmissionWorld world(false);
  world.pause = milliseconds(10);
  REQUIRE(::send(world.client_end.Get(), "x", 1, MSG_NOSIGNAL) == 1);
  world.io.run_for(milliseconds(30));
  char byte = 0;
  CHECK(::recv(world.grpc_end.Get(), &byte, 1, MSG_DONTWAIT) < 0);
  world.pause = milliseconds(0);
  CHECK(RunUntil(world.io, [&] { return ::recv(world.grpc_end.Get(), &byte, 1, MSG_DONTWAIT) == 1; }));
}
