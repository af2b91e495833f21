// Quotas: separate for each uid, given back, refused with a remedy; and the log's lines about refusals.
#include "daemon/connections/quotas.h"

#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/telemetry/uid_lines.h"
#include "tests/catch.h"
#include "tests/unit/daemon/folder.h"

using namespace xschedd;

namespace {

constexpr std::uint64_t kSecond = policy::kNsPerS;
constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;

}  // namespace

TEST_CASE("a uid gets no more than its quota, which affects no other uid, and gives back what it ends") {
  Quota limits;
  limits.queues_per_uid = 3;
  limits.root_times = 2;
  Quotas quotas(limits);
  Quotas::Holding first(quotas, kAlice, QuotaKind::kQueues);
  Quotas::Holding second(quotas, kAlice, QuotaKind::kQueues);
  CHECK(first.Add(2));
  CHECK(!second.Add(2));
  CHECK(second.Add(1));
  CHECK(!first.Add());
  CHECK(quotas.Refused(QuotaKind::kQueues) == 2);
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 3);

  Quotas::Holding other(quotas, kBob, QuotaKind::kQueues);
  CHECK(other.Add(3));
  Quotas::Holding root(quotas, 0, QuotaKind::kQueues);
  CHECK(root.Add(6));
  CHECK(!root.Add());

  {
    const Quotas::Holding moved = std::move(first);
    CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 3);
  }
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 1);
  second.Remove(5);  // never more than it has
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 0);
  CHECK(quotas.Held(kBob, QuotaKind::kQueues) == 3);
  // A limit that is lowered by a reload ends nothing, and allows nothing new.
  limits.queues_per_uid = 1;
  quotas.SetLimits(limits);
  CHECK(!other.Add());
  CHECK(quotas.Held(kBob, QuotaKind::kQueues) == 3);
  // An amount that would overflow.
  CHECK(!second.Add(~std::uint64_t{0}));
}

TEST_CASE("a holding without a user has no limit, and one assigned to itself stays") {
  Quota limits;
  limits.queues_per_uid = 1;
  Quotas quotas(limits);
  Quotas::Holding nobodys;
  CHECK(nobodys.Add(1'000'000));
  nobodys.Remove(1'000'000);
  Quotas::Holding own(quotas, kAlice, QuotaKind::kQueues);
  REQUIRE(own.Add());
  Quotas::Holding& same = own;
  own = std::move(same);
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 1);
  own = std::move(nobodys);
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 0);
}

TEST_CASE("no uid gets more than half of the connections that the daemon's descriptors last for") {
  Quotas quotas{Quota{}};
  CHECK(quotas.Limit(kAlice, QuotaKind::kConnections) == Quota{}.connections_per_uid);
  quotas.SetCapacity(100);
  CHECK(quotas.Limit(kAlice, QuotaKind::kConnections) == 50);
  CHECK(quotas.Limit(0, QuotaKind::kConnections) == 50);
  CHECK(quotas.Reason(kAlice, QuotaKind::kConnections).find("raise LimitNOFILE of xschedd") != std::string::npos);
  CHECK(Quota{}.clients_per_uid < Quota{}.connections_per_uid);
}

TEST_CASE("unused quota per second adds up for four seconds, and debts are paid first") {
  Quota limits;
  limits.calls_per_s = 10;
  Quotas quotas(limits);
  std::uint64_t now = kSecond;
  const auto take = [&](uid_t uid) {
    if (!quotas.Has(uid, QuotaKind::kCalls, now)) return false;
    quotas.Charge(uid, QuotaKind::kCalls, 1);
    return true;
  };
  int taken = 0;
  while (take(kAlice))
    ++taken;
  CHECK(taken == 40);
  CHECK(take(kBob));
  now += kSecond / 2;
  for (taken = 0; take(kAlice);)
    ++taken;
  CHECK(taken == 5);
  quotas.Charge(kAlice, QuotaKind::kCalls, 30);
  now += 3 * kSecond;
  CHECK(!take(kAlice));
  now += kSecond;
  CHECK(take(kAlice));
  // A clock that stands still or goes back gives nothing.
  now = 2;
  CHECK(take(kAlice));
  CHECK(quotas.Pause(kAlice) >= std::chrono::milliseconds(10));
}

TEST_CASE("a user with very many uids is forgotten again") {
  Quotas quotas{Quota{}};
  std::uint64_t now = kSecond;
  Quotas::Holding kept(quotas, 5, QuotaKind::kClients);
  REQUIRE(kept.Add());
  for (uid_t uid = 10'000; uid < 12'000; ++uid)
    quotas.Has(uid, QuotaKind::kConnects, now);
  now += 60 * kSecond;
  CHECK(quotas.Has(kAlice, QuotaKind::kConnects, now));
  CHECK(quotas.Held(5, QuotaKind::kClients) == 1);
}

TEST_CASE("each quota has its own name and reason, which says whose it is, how much, and what to do") {
  const Quotas quotas{Quota{}};
  std::set<std::string> reasons;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kQuotaKinds; ++i) {
    const auto kind = static_cast<QuotaKind>(i);
    const std::string reason = quotas.Reason(kAlice, kind);
    INFO(reason);
    CHECK(reason.starts_with("uid 1000 has "));
    CHECK(reason.find("; ") != std::string::npos);
    CHECK(reason.ends_with(" in [quota]"));
    CHECK(reason.find(std::to_string(quotas.Limit(kAlice, kind))) != std::string::npos);
    reasons.insert(reason);
    names.insert(Text(kind));
  }
  CHECK(reasons.size() == kQuotaKinds);
  CHECK(names.size() == kQuotaKinds);
}

TEST_CASE("a uid's flood of refusals neither hides another's nor fills the log") {
  UidLines lines(kRefusalLines);
  const std::uint64_t now = kSecond;
  int logged = 0;
  for (int i = 0; i < 1'000; ++i)
    logged += lines.Take(kAlice, now) ? 1 : 0;
  CHECK(logged == 10);
  const auto other = lines.Take(kBob, now);
  REQUIRE(other);
  CHECK(*other == 0);
  const auto later = lines.Take(kAlice, now + 2 * kSecond);
  REQUIRE(later);
  CHECK(*later == 990);
  // A user with thousands of uids.
  for (std::uint32_t uid = 5'000; uid < 15'000; ++uid)
    logged += lines.Take(uid, now + 2 * kSecond) ? 1 : 0;
  CHECK(logged < 300);
}

TEST_CASE("the use by a user's subordinate uids counts for the user") {
  const auto users = [](const std::string& name) -> std::optional<uid_t> {
    if (name == "alice") return kAlice;
    if (name == "root") return 0;
    return std::nullopt;
  };
  Quota limits;
  limits.connections_per_uid = 4;
  limits.calls_per_s = 10;
  Quotas quotas(limits);
  quotas.SetCapacity(8);
  std::vector<Quotas::Holding> held;
  const auto connect = [&](uid_t uid) { return held.emplace_back(quotas, uid, QuotaKind::kConnections).Add(); };
  const auto connections = [&] {
    held.clear();
    int had = 0;
    for (uid_t uid = 100'000; uid < 100'008; ++uid)
      had += connect(uid) ? 1 : 0;
    return had;
  };
  CHECK(connections() == 8);  // of eight users
  quotas.SetSubordinates(SubordinateUids::Parse("alice:100000:65536\n", users));
  CHECK(connections() == 4);
  CHECK_FALSE(connect(kAlice));
  CHECK(connect(kBob));
  CHECK(quotas.Held(100'003, QuotaKind::kConnections) == 4);
  CHECK(quotas.Reason(100'003, QuotaKind::kConnections)
            .starts_with("uid 1000 (with its subordinate uid 100003) has 4 connections, and may have 4; "));
  // Connected before a reload, ended after it.
  quotas.SetSubordinates(SubordinateUids());
  held.clear();
  CHECK(quotas.Held(kAlice, QuotaKind::kConnections) == 0);
  CHECK(quotas.Held(kBob, QuotaKind::kConnections) == 0);
  quotas.SetSubordinates(SubordinateUids::Parse("alice:100000:65536\n", users));
  quotas.Has(100'000, QuotaKind::kCalls, kSecond);
  quotas.Charge(100'000, QuotaKind::kCalls, 1'000);
  CHECK_FALSE(quotas.Has(100'001, QuotaKind::kCalls, kSecond));
  CHECK_FALSE(quotas.Has(kAlice, QuotaKind::kCalls, kSecond));
  CHECK(quotas.Has(kBob, QuotaKind::kCalls, kSecond));
}

TEST_CASE("the owner of a subordinate uid is read from a file of ranges, and wrong lines in it are ignored") {
  struct Row {
    const char* text;
    uid_t uid;
    uid_t owner;
  };
  const Row rows[] = {
      {"", 100'000, 100'000},
      {"alice:100000:65536", 99'999, 99'999},
      {"alice:100000:65536", 100'000, 1000},
      {"alice:100000:65536", 165'535, 1000},
      {"alice:100000:65536", 165'536, 165'536},
      {"alice:100000:65536", 0, 0},
      {"1001:100000:65536\n", 100'000, 1001},
      {"# comment\n\nalice:100000:10\nbob:100010:10\n", 100'012, 1001},
      {"alice:100000:10\nalice:300000:10\n", 300'005, 1000},
      // The first of two that overlap, and the rest of the second.
      {"alice:100010:10\nbob:100000:30\n", 100'015, 1000},
      {"alice:100010:10\nbob:100000:30\n", 100'005, 1001},
      {"alice:100010:10\nbob:100000:30\n", 100'025, 1001},
      {"alice:100010:10\nbob:100000:30\n", 100'030, 100'030},
      {"root:100000:65536\n", 100'000, 100'000},
      {"nobody-here:100000:65536\nalice:100000:10\n", 100'000, 1000},
      {"alice:0:65536\n", 1, 1},
      {"alice:100000:0\n", 100'000, 100'000},
      {"alice:100000\nalice:100000:1:1\nalice:x:1\nalice:1:-1\nalice::\n", 100'000, 100'000},
      {"alice:4294967290:100000000000\n", 4'294'967'294, 1000},
      {"alice:18446744073709551615:18446744073709551615\n", 5, 5},
  };
  for (const Row& row : rows) {
    INFO(row.text << " uid " << row.uid);
    const auto uids = SubordinateUids::Parse(row.text, [](const std::string& name) -> std::optional<uid_t> {
      if (name == "alice") return kAlice;
      if (name == "bob") return kBob;
      if (name == "root") return 0;
      return std::nullopt;
    });
    CHECK(uids.OwnerOf(row.uid) == row.owner);
  }
  const test::Folder folder;
  const std::string path = folder.Path() + "/subuid";
  CHECK(SubordinateUids::Read(path).Ranges() == 0);
  std::ofstream(path) << "4711:500000:10\nroot:600000:10\n";
  CHECK(SubordinateUids::Read(path).OwnerOf(500'009) == 4711);
  CHECK(SubordinateUids::Read(path).OwnerOf(600'009) == 600'009);
}

TEST_CASE("a place has a part of what its uid has, and all places together no more than the uid") {
  Quota limits;
  limits.queues_per_uid = 4;
  limits.calls_per_s = 10;
  limits.root_times = 4;
  Quotas quotas(limits);
  std::vector<Quotas::Holding> held;
  const auto take = [&](const Principal& who) { return held.emplace_back(quotas, who, QuotaKind::kQueues).Add(); };
  const auto taken = [&](const Principal& who) {
    int count = 0;
    while (count < 100 && take(who))
      ++count;
    return count;
  };
  const auto place = [](std::uint32_t uid, int number) {
    return Principal(uid, "container " + std::to_string(number));
  };
  // Root's factor of four counts for all its containers together.
  CHECK(taken(place(0, 1)) == 4);
  CHECK(quotas.Reason(place(0, 1), QuotaKind::kQueues)
            .starts_with("uid 0 in container 1 has 4 queues, and may have 4; "));
  CHECK(taken(place(0, 2)) == 4);
  CHECK(taken(place(kAlice, 1)) == 2);
  CHECK(taken(place(kAlice, 2)) == 2);
  // A thousand places of one user together have one user's quota.
  for (int number = 3; number < 1'000; ++number)
    CHECK(!take(place(kAlice, number)));
  CHECK(!take(kAlice));
  CHECK(quotas.Held(kAlice, QuotaKind::kQueues) == 4);
  CHECK(quotas.Held(place(kAlice, 1), QuotaKind::kQueues) == 2);
  CHECK(quotas.Reason(place(kAlice, 3), QuotaKind::kQueues).starts_with("uid 1000 has 4 queues, and may have 4; "));
  CHECK(taken(place(kBob, 1)) == 2);
  // The host has what the places leave.
  CHECK(taken(kBob) == 2);
  held.clear();
  for (const Principal& who : {place(0, 1), place(kAlice, 1), Principal(kAlice), Principal(0)})
    CHECK(quotas.Held(who, QuotaKind::kQueues) == 0);
  CHECK(taken(kAlice) == 4);
  held.clear();

  const auto calls = [&](const Principal& who) {
    int count = 0;
    for (; quotas.Has(who, QuotaKind::kCalls, kSecond); ++count)
      quotas.Charge(who, QuotaKind::kCalls, 1);
    return count;
  };
  CHECK(calls(place(0, 1)) == 40);
  CHECK(quotas.Reason(place(0, 1), QuotaKind::kCalls)
            .starts_with("uid 0 in container 1 has used up its 10 xschedctl calls per second; "));
  CHECK(calls(place(0, 2)) == 40);
  CHECK(calls(0) == 80);
  CHECK(calls(place(0, 3)) == 0);
  CHECK(quotas.Reason(place(0, 3), QuotaKind::kCalls).starts_with("uid 0 has used up its 40 "));
  int in_all = 0;
  for (int number = 0; number < 1'000; ++number)
    in_all += calls(place(kAlice, number));
  CHECK(in_all == 40);
}

TEST_CASE("a place has at most half of its user's lines in the log, and a user with many places no more than one") {
  const auto logged = [](auto place_of) {
    UidLines lines(kRefusalLines);
    int count = 0;
    for (int i = 0; i < 1'000; ++i)
      count += lines.Take({0, place_of(i)}, kSecond) ? 1 : 0;
    // The rest is for another pod, and for another user.
    const bool has_other = lines.Take({0, "container other"}, kSecond).has_value();
    CHECK(lines.Take(kAlice, kSecond));
    return std::pair(count, has_other);
  };
  CHECK(logged([](int) { return std::string("container one"); }) == std::pair(5, true));
  CHECK(logged([](int i) { return "container " + std::to_string(i); }) == std::pair(10, false));
}
