// Quotas: each uid for itself, given back, words with a remedy; and the log's lines about refusals.
#include "daemon/ipc/quotas.h"

#include <set>

#include "daemon/telemetry/uid_lines.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

constexpr std::uint64_t kSecond = policy::kNsPerS;
constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;

}  // namespace

TEST_CASE("what a uid holds ends at its quota, hinders no other uid, and is given back") {
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
  // A limit that is lowered at a reload takes nothing away, and gives nothing.
  limits.queues_per_uid = 1;
  quotas.SetLimits(limits);
  CHECK(!other.Add());
  CHECK(quotas.Held(kBob, QuotaKind::kQueues) == 3);
  // An amount that would wrap around.
  CHECK(!second.Add(~std::uint64_t{0}));
}

TEST_CASE("what belongs to nobody has no limit, and what is given to itself stays") {
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

TEST_CASE("what is given by the second is saved up for four, and debts are paid first") {
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

TEST_CASE("somebody with very many uids is forgotten again") {
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

TEST_CASE("each quota has a name and a reason of its own, with whose, how much, and what to do") {
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
  // Somebody with thousands of uids.
  for (std::uint32_t uid = 5'000; uid < 15'000; ++uid)
    logged += lines.Take(uid, now + 2 * kSecond) ? 1 : 0;
  CHECK(logged < 300);
}
