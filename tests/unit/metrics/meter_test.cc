// What is counted, under which class, and what clients cannot falsify.
#include "daemon/telemetry/meter.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/scheduler/memory_watch.h"
#include "tests/catch.h"
#include "tests/unit/metrics/metered_world.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

std::uint64_t Launches(const World& world) {
  std::uint64_t sum = 0;
  for (const ClassAccount& account : world.scheduler.Records().Metrics().Accounts())
    sum += account.total.launches;
  return sum;
}

std::string Address(unsigned i) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:00.0", 0x1000 + (i >> 8), i & 0xff);
  return text;
}

constexpr auto kHeldPhase = static_cast<std::size_t>(Phase::kHeld);

}  // namespace

TEST_CASE("holds, transitions and time, by class") {
  World world;
  const auto high = Connect(world, 1, 50, kGpu);
  const auto low = Connect(world, 2, -1, kGpu);
  world.Report(*low, true);
  world.Report(*high, true);
  fake_now += 3 * policy::kNsPerMs;
  CountAll(world);
  const ClassAccount* lows = Find(world, kGpu, "low");
  REQUIRE(lows != nullptr);
  CHECK(lows->present.clients[kHeldPhase] == 1);
  CHECK(lows->present.longest_hold_ns == 3 * policy::kNsPerMs);
  CHECK(lows->total.held_ns == 3 * policy::kNsPerMs);
  CHECK(lows->holds.SumNs() == 0);  // still held
  fake_now += 4 * policy::kNsPerMs;
  world.Report(*high, false);
  CountAll(world);
  lows = Find(world, kGpu, "low");
  CHECK(lows->total.held_ns == 7 * policy::kNsPerMs);
  CHECK(lows->holds.SumNs() == 7 * policy::kNsPerMs);
  CHECK(lows->present.longest_hold_ns == 0);
  CHECK(lows->total.became_busy == 1);
  const ClassAccount* highs = Find(world, kGpu, "high");
  REQUIRE(highs != nullptr);
  CHECK((highs->total.became_busy == 1 && highs->total.became_idle == 1 && highs->total.held_ns == 0));
  CHECK(world.scheduler.Records().Metrics().Devices()[1].decisions == world.scheduler.Counts().decisions);
}

TEST_CASE("a hold that spans a change of class counts for both classes") {
  World world;
  const auto high = Connect(world, 1, 50, kGpu);
  const auto low = Connect(world, 2, -1, kGpu);
  world.Report(*low, true);
  world.Report(*high, true);
  fake_now += 2 * policy::kNsPerMs;
  world.scheduler.Records().Metrics().Close(*low->client, fake_now);
  low->client->effective.metric_class = "batch";
  fake_now += 5 * policy::kNsPerMs;
  CountAll(world);
  CHECK(Find(world, kGpu, "low")->total.held_ns == 2 * policy::kNsPerMs);
  CHECK(Find(world, kGpu, "batch")->total.held_ns == 5 * policy::kNsPerMs);
  CHECK(Find(world, kGpu, "batch")->total.became_busy == 0);
}

TEST_CASE("a ledger is believed within physical limits") {
  World world;
  const auto high = Connect(world, 1, 50, kGpu);
  const auto low = Connect(world, 2, -1, kGpu);
  abi::LedgerDevice& ledger = low->ledger->Device(0);
  ledger.gpu_time_ns = 10'000 * policy::kNsPerS;
  ledger.submitted = ~0ull;
  ledger.in_flight = ~0u;
  fake_now += policy::kNsPerS;
  CountAll(world);
  const Usage first = Find(world, kGpu, "low")->total;
  CHECK(first.gpu_ns == policy::kNsPerS);
  CHECK(first.launches <= Meter::kMaxLaunchesPerS + 10'000);
  CHECK(Find(world, kGpu, "low")->present.in_flight == Meter::kMaxInFlight);
  ledger.gpu_time_ns = 0;
  ledger.submitted = 0;
  CountAll(world);
  CHECK(Find(world, kGpu, "low")->total.gpu_ns == first.gpu_ns);
  CHECK(Find(world, kGpu, "low")->total.launches == first.launches);
  CHECK(Find(world, kGpu, "high")->total.launches == 0);
}

TEST_CASE("a client's work still counts after it has left") {
  World world;
  const auto high = Connect(world, 1, 50, kGpu);
  {
    const auto low = Connect(world, 2, -1, kGpu);
    low->ledger->Device(0).submitted = 9;
    world.Disconnect(*low);
  }
  CountAll(world);
  CHECK(Find(world, kGpu, "low")->total.launches == 9);
  CHECK(Find(world, kGpu, "low")->present.clients == Present().clients);
}

TEST_CASE("each claim has an account of what its clients used while they had it") {
  World world;
  Meter& meter = world.scheduler.Records().Metrics();
  const auto claim = [&](std::uint64_t id, const std::string& name) {
    Claim made;
    made.id = id;
    made.name = name;
    const auto shared = std::make_shared<const Claim>(made);
    meter.Claims().Put(shared, 1'000);
    return shared;
  };
  const ClaimPtr one = claim(1, "one");
  const ClaimPtr two = claim(2, "two");
  const auto low = Connect(world, 2, -1, kGpu);  // alone, and so untracked
  low->client->claim = one;
  fake_now += 3 * policy::kNsPerMs;
  const auto high = Connect(world, 1, 50, kGpu);
  high->client->claim = two;
  world.Report(*low, true);
  world.Report(*high, true);
  low->ledger->Device(0).submitted = 4;
  low->ledger->Device(0).gpu_time_ns = 1'000;
  fake_now += 5 * policy::kNsPerMs;
  CountAll(world);
  low->ledger->Device(0).submitted = 6;
  meter.Settle(*low->client, fake_now);
  low->client->claim = two;
  low->ledger->Device(0).submitted = 7;
  fake_now += 1 * policy::kNsPerMs;
  world.Disconnect(*low);
  const Usage& of_one = meter.Claims().Find(1)->usage;
  CHECK(of_one.launches == 6);
  CHECK(of_one.gpu_ns == 1'000);
  CHECK(of_one.held_ns == 5 * policy::kNsPerMs);
  CHECK(of_one.untracked_ns == 3 * policy::kNsPerMs);
  CHECK(meter.Claims().Find(2)->usage.launches == 1);
  CHECK(meter.Claims().TakeChanged() == std::set<std::uint64_t>{1, 2});
  CHECK(meter.Claims().TakeChanged().empty());
}

TEST_CASE(
    "device memory is counted by class, and of a claim on the device where it has most; no client can overflow it") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  World world;
  const auto one = Connect(world, 1, 50, kGpu);
  const auto two = Connect(world, 2, 50, kGpu);
  const auto elsewhere = Connect(world, 3, 50, "0000:c2:00.0");
  Claim claim;
  claim.name = "c";
  claim.id = 7;
  const auto put = std::make_shared<const Claim>(claim);
  ClaimAccounts& accounts = world.scheduler.Records().Metrics().Claims();
  accounts.Put(put, 0);
  for (Peer* peer : {one.get(), two.get(), elsewhere.get()})
    SetClaim(*peer->client, put);
  MemoryWatch watch(world.registry, accounts, [](const Attachment&, std::uint64_t) {});
  watch.LookAtAll(fake_now);
  one->ledger->SetMemory(0, 3 * kGiB, 1);
  two->ledger->SetMemory(0, 4 * kGiB, 2);
  elsewhere->ledger->SetMemory(0, 5 * kGiB, 0);
  two->client->attachments.at(0)->memory.limit = 8 * kGiB;
  one->client->own_memory_limit = 6 * kGiB;
  fake_now += policy::kNsPerMs;
  CountAll(world);
  const ClassAccount* const high = Find(world, kGpu, "high");
  REQUIRE(high != nullptr);
  CHECK(high->present.memory_bytes == 7 * kGiB);
  CHECK(high->present.memory_limit_bytes == 6 * kGiB);
  CHECK(high->total.memory_refused == 3);
  CHECK(accounts.MemoryBytes(7) == 7 * kGiB);
  CHECK(accounts.Find(7)->usage.memory_refused == 3);
  for (Peer* peer : {one.get(), two.get()})
    peer->ledger->SetMemory(0, ~std::uint64_t{0}, ~std::uint64_t{0});
  CountAll(world);
  CHECK(Find(world, kGpu, "high")->present.memory_bytes == 2 * MemorySnapshot::kMostBytes);
  CHECK(accounts.MemoryBytes(7) == 2 * MemorySnapshot::kMostBytes);
  CHECK(Find(world, kGpu, "high")->total.memory_refused <= 4 * Meter::kMaxLaunchesPerS / 1'000);
  for (Peer* peer : {one.get(), two.get()})
    peer->ledger->SetMemory(0, 0, 0);
  CountAll(world);
  CHECK(accounts.MemoryBytes(7) == 5 * kGiB);
}

TEST_CASE("the last claims that ended are kept, and their accounts do not change") {
  ClaimAccounts accounts;
  const auto put = [&](std::uint64_t id) {
    Claim claim;
    claim.id = id;
    claim.name = "again";
    accounts.Put(std::make_shared<const Claim>(claim), id);
    return claim;
  };
  Usage usage;
  usage.launches = 2;
  for (std::uint64_t id = 1; id <= kMaxEndedClaims; ++id) {
    const Claim claim = put(id);
    accounts.Add(claim, usage);
    CHECK(accounts.End(claim, "removed", 7) == 0);
    accounts.Add(claim, usage);
    CHECK(accounts.End(claim, "again", 8) == 0);
  }
  const Claim lasts = put(kMaxEndedClaims + 1);
  CHECK(accounts.End(put(kMaxEndedClaims + 2), "removed", 9) == 1);
  CHECK(accounts.Find(1) == nullptr);
  const auto sorted = accounts.Sorted("again");
  REQUIRE(sorted.size() == kMaxEndedClaims + 1);
  CHECK(sorted[0]->claim->id == lasts.id);
  CHECK(sorted[1]->claim->id == kMaxEndedClaims + 2);
  CHECK(sorted.back()->claim->id == 2);
  CHECK(sorted.back()->usage.launches == 2);
  CHECK(sorted.back()->end_reason == "removed");
  CHECK(accounts.Sorted("other").empty());
  ClaimAccounts restored;
  for (const auto& [id, account] : accounts.All())
    restored.Restore(account);
  CHECK(restored.Sorted("").front()->claim->id == lasts.id);
  CHECK(restored.End(lasts, "removed", 10) == 2);
}

TEST_CASE("the number of claims with a series is bounded, and no counter of one goes back") {
  ClaimAccounts accounts;
  std::uint64_t next = 1;
  std::map<std::string, std::uint64_t> seen;  // launches by the name of a series; "": the rest
  std::uint64_t used = 0;
  const auto look = [&] {
    std::map<std::string, std::uint64_t> now{{"", accounts.Rest().launches}};
    for (const std::uint64_t id : accounts.Series()) {
      const ClaimAccount& account = *accounts.Find(id);
      CHECK(now.emplace(account.claim->name, account.in_series.launches).second);
    }
    CHECK(now.size() <= kClaimSeries + 1);
    for (const auto& [name, launches] : now) {
      CHECK(launches >= seen[name]);
      seen[name] = launches;
    }
    std::uint64_t sum = 0;
    for (const auto& [name, launches] : seen)
      sum += launches;
    CHECK(sum == used);
  };
  const auto put = [&](const std::string& name) {
    Claim claim;
    claim.id = next++;
    claim.name = name;
    accounts.Put(std::make_shared<const Claim>(claim), 0);
    look();
    return claim;
  };
  const auto use = [&](const Claim& claim, std::uint64_t gpu_ns) {
    Usage usage;
    usage.gpu_ns = gpu_ns;
    usage.launches = 1;
    ++used;
    accounts.Add(claim, usage);
    look();
  };
  const auto has = [&](const Claim& claim) { return accounts.Series().contains(claim.id); };
  CHECK_FALSE(accounts.IsUsed());
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < kClaimSeries; ++i) {
    claims.push_back(put("c" + std::to_string(i)));
    use(claims.back(), 1'000 + i);
  }
  CHECK(accounts.IsUsed());
  const Claim late = put("late");
  CHECK_FALSE(has(late));
  use(late, 2'000);
  accounts.ChooseSeries(1);
  CHECK_FALSE(has(late));  // not more than twice what the one with the least has
  use(late, 1);
  accounts.ChooseSeries(2);
  look();
  CHECK((has(late) && !has(claims[0])));
  use(claims[0], 10'000);
  accounts.ChooseSeries(3);
  look();
  CHECK((has(claims[0]) && !has(claims[1])));
  use(claims[0], 1);
  // A claim that has ended keeps its series for some time, and a new one of its name continues it.
  accounts.End(late, "", 1'000);
  accounts.End(claims[0], "", 1'000);
  accounts.ChooseSeries(1'000 + kSeriesKeptMs - 1);
  CHECK((has(late) && has(claims[0])));
  const Claim again = put("late");
  CHECK((has(again) && !has(late)));
  use(again, 1);
  accounts.ChooseSeries(1'000 + kSeriesKeptMs);
  look();
  CHECK((!has(claims[0]) && has(claims[1])));
  accounts.End(again, "", 2'000);
  accounts.ChooseSeries(2'000 + kSeriesKeptMs);
  const Claim third = put("late");
  use(third, 1);
  CHECK((has(third) && accounts.Find(third.id)->in_series.launches == seen["late"]));
}

TEST_CASE("devices are bounded, those in use stay, and totals lose nothing") {
  World world;
  const auto stays = Connect(world, 1, 0, kGpu);
  stays->ledger->Device(0).submitted = 5;
  fake_now += policy::kNsPerMs;
  constexpr unsigned kDevices = 300;
  for (unsigned i = 0; i < kDevices; ++i) {
    const auto passing = Connect(world, 100 + i, static_cast<int>(i % 3) - 1, Address(i));
    passing->ledger->Device(0).submitted = 1;
    world.Disconnect(*passing);
  }
  CountAll(world);
  const Meter& meter = world.scheduler.Records().Metrics();
  CHECK(meter.Devices().size() == Meter::kMaxMeteredDevices + 1);
  CHECK(meter.Accounts().size() <= Meter::kMaxAccounts);
  CHECK(Find(world, kGpu, "normal")->total.launches == 5);
  CHECK(Launches(world) == kDevices + 5);
  CHECK(Find(world, Address(kDevices - 1), "high") != nullptr);
  CHECK(Find(world, "other", "low") != nullptr);
}

TEST_CASE("when all devices have clients, one more counts as other") {
  World world;
  std::vector<std::unique_ptr<Peer>> peers;
  for (unsigned i = 0; i < Meter::kMaxMeteredDevices + 3; ++i) {
    peers.push_back(Connect(world, 1 + i, 0, Address(i)));
    peers.back()->ledger->Device(0).submitted = 1;
  }
  CountAll(world);
  CHECK(Find(world, "other", "normal")->total.launches == 3);
  CHECK(Find(world, Address(0), "normal")->total.launches == 1);
}

TEST_CASE("classes and pairs are bounded") {
  World world;
  const auto peer = Connect(world, 1, 0, kGpu);
  for (unsigned i = 0; i < 100; ++i) {
    world.scheduler.Records().Metrics().Close(*peer->client, fake_now);
    peer->client->effective.metric_class = "c" + std::to_string(i);
    peer->ledger->Device(0).submitted += 1;
    CountAll(world);
  }
  CHECK(world.scheduler.Records().Metrics().Classes().size() == Meter::kMaxClasses);
  CHECK(Launches(world) == 100);
}

TEST_CASE("a priority's band is its class, unless a rule names one") {
  Effective effective;
  CHECK(ClassOf(effective) == "normal");
  effective.priority = 1;
  CHECK(ClassOf(effective) == "high");
  effective.priority = -100;
  CHECK(ClassOf(effective) == "low");
  effective.metric_class = "batch";
  CHECK(ClassOf(effective) == "batch");
}
