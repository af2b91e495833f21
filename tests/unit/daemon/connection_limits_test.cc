// Too many and unused connections: which get an answer, and that no other user is affected.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/daemon/as_user.h"
#include "tests/unit/daemon/connection_table.h"

using namespace xschedd;
using test::Pair;
using test::RunAWhile;
using test::RunUntil;
using test::Say;
using test::Table;

namespace {

constexpr int kBeingRefused = 16;  // connections of one uid open only to be refused (Connections)

// A table for a daemon with this descriptor limit.
std::unique_ptr<Table> TableOf(rlim_t descriptors) {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{descriptors, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  auto table = std::make_unique<Table>();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  return table;
}

// The peer's end of a connection by this user.
UniqueFd ConnectAs(Table& table, uid_t uid) {
  Pair pair;
  if (uid != 0) {
    const test::AsUser user(uid);
    pair = Pair();
  }
  table.connections.Accept(std::move(pair.ours), false);
  return std::move(pair.peers);
}

PreambleStatus StatusTold(const UniqueFd& shim) {
  PreambleWelcome welcome{};
  REQUIRE(::recv(shim.Get(), &welcome, sizeof welcome, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof welcome));
  return welcome.status;
}

}  // namespace

TEST_CASE("a few refused connections of one user stay open, the rest close at once") {
  Table table;
  table.AllowConnections(1);
  const UniqueFd first = table.Admit();
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < kBeingRefused; ++i)
    waiting.push_back(table.Connect());
  for (const UniqueFd& one : waiting) {
    char byte;
    CHECK((::recv(one.Get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN));  // the peer has not yet said what it is
  }
  const UniqueFd next = table.Connect();
  CHECK(StatusTold(next) == PreambleStatus::kQuota);
  CHECK(test::IsClosed(next));
  CHECK(table.refused.size() == kBeingRefused + 1);
  // Connections that leave, or stay too long, make room.
  waiting.resize(kBeingRefused / 2);
  REQUIRE(RunUntil(table.io, [&] { return std::all_of(waiting.begin(), waiting.end(), &test::IsClosed); }));
  CHECK(table.adopted.size() == 1);
  const UniqueFd later = table.Admit();
  CHECK_FALSE(table.Find(table.adopted[1].Get())->refusal.ok());
  CHECK(table.Find(table.adopted[0].Get())->refusal.ok());
}

TEST_CASE("refused connections of one container leave room for those of another, but not of any number") {
  Table table;
  Quota limits;
  limits.connections_per_uid = 4;
  table.quotas.SetLimits(limits);
  std::vector<UniqueFd> open;
  const auto connect_many = [&](const std::string& place) {
    table.place = place;
    int told_later = 0;
    for (int i = 0; i < 2 * kBeingRefused; ++i) {
      UniqueFd peer = table.Connect();
      char byte;
      if (::recv(peer.Get(), &byte, 1, MSG_DONTWAIT) >= 0) continue;
      ++told_later;
      open.push_back(std::move(peer));
    }
    return told_later;
  };
  const auto limit = table.quotas.Limit({::geteuid(), "container 1"}, QuotaKind::kConnections);
  CHECK(connect_many("container 1") == static_cast<int>(limit) + kBeingRefused);
  CHECK(table.refused.back().find(" in container 1 has " + std::to_string(limit) + " connections") !=
        std::string::npos);
  for (const char* place : {"container 2", "container 3", "container 4"})
    CHECK(connect_many(place) >= kBeingRefused);
  CHECK(connect_many("container 5") == 0);
}

TEST_CASE("connections are accepted only while descriptors last") {
  if (!test::CanBecomeUsers()) return;
  const auto table = TableOf(64);  // half of it at eight for each
  std::vector<UniqueFd> let_in;
  for (const uid_t uid : {0, 0, 1, 1})
    let_in.push_back(ConnectAs(*table, uid));
  CHECK(table->refused.empty());
  const UniqueFd next = ConnectAs(*table, 2);
  REQUIRE(table->refused.size() == 1);
  CHECK(table->refused[0].find("(uid 2) was refused: xschedd has 4 connections of all users") != std::string::npos);
  CHECK(table->refused[0].find("raise LimitNOFILE in xschedd.service") != std::string::npos);
  CHECK(StatusTold(next) == PreambleStatus::kQuota);
  CHECK(test::IsClosed(next));
  // A user with half of them is refused because of its own limit.
  CHECK(StatusTold(ConnectAs(*table, 1)) == PreambleStatus::kQuota);
  CHECK(table->refused.back().find("(uid 1) was refused: uid 1 has 2 connections") != std::string::npos);
  SECTION("an administrator is admitted") {
    Pair administrator;
    Say(administrator.peers, test::kPlain);
    table->connections.Accept(std::move(administrator.ours), true);
    CHECK(RunUntil(table->io, [&] { return table->adopted.size() == 1; }));
  }
  SECTION("the next client is admitted when one has left") {
    let_in.pop_back();
    RunAWhile(table->io);
    const UniqueFd later = ConnectAs(*table, 2);
    Say(later, test::kPlain);
    CHECK(RunUntil(table->io, [&] { return table->adopted.size() == 1; }));
    CHECK(table->Find(table->adopted[0].Get())->refusal.ok());
  }
}

TEST_CASE("a user over its byte quota is not read until the debt is paid") {
  Table table;
  const UniqueFd peer = table.Admit();
  const UniqueFd grpc(std::move(table.adopted[0]));
  char bytes[64];
  const auto read = [&] { return ::recv(grpc.Get(), bytes, sizeof bytes, MSG_DONTWAIT) > 0; };
  REQUIRE(RunUntil(table.io, read));  // its first bytes
  constexpr std::uint64_t kMuch = 1'000'000'000'000;
  table.quotas.Charge(::geteuid(), QuotaKind::kMessageBytes, kMuch);
  Say(peer, "more");
  for (int i = 0; i < 10; ++i)
    RunAWhile(table.io);
  CHECK_FALSE(read());
  Quota limits;
  limits.message_kib_per_s = 4'000'000'000;
  table.quotas.SetLimits(limits);
  CHECK(RunUntil(table.io, read));
}

TEST_CASE("only an unused connection is closed") {
  Table table;
  std::vector<UniqueFd> peers;
  for (int i = 0; i < 4; ++i)
    peers.push_back(table.Admit());
  const auto connection = [&](std::size_t i) { return table.Find(table.adopted[i].Get()); };
  for (std::size_t i = 0; i < peers.size(); ++i)
    REQUIRE(connection(i) != nullptr);
  const int unused = table.adopted[0].Get();
  connection(1)->has_session = true;
  connection(2)->calls = 1;                                         // is watching events
  connection(3)->last_call_ns = MonotonicNs() + 3'600'000'000'000;  // called just now
  REQUIRE(RunUntil(table.io, [&] { return !table.gone.empty(); }));
  for (int i = 0; i < 20; ++i)
    RunAWhile(table.io);  // past the others' limit, too
  CHECK(table.gone == std::vector<int>{unused});
  CHECK(test::IsClosed(peers[0]));
  for (std::size_t i = 1; i < peers.size(); ++i)
    CHECK(connection(i) != nullptr);
}
