// Who waited for whom and what was gained, by namespace and partition, and how many of them have series.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/telemetry/meter.h"
#include "tests/catch.h"
#include "tests/unit/metrics/metered_world.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

ClaimPtr InSpace(std::uint64_t id, const ClaimLabels& labels) {
  Claim made;
  made.id = id;
  made.name = "claim-" + std::to_string(id);
  made.labels = labels;
  return std::make_shared<const Claim>(made);
}

std::map<std::pair<std::string, std::string>, std::uint64_t> Waits(const World& world) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> waits;
  world.scheduler.Records().Metrics().Spaces().AllWaits().ForEach(
      [&](const auto& pair, const auto& parts) { waits.emplace(pair, parts[0]); });
  return waits;
}

std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> Used(const World& world) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> used;
  world.scheduler.Records().Metrics().Spaces().AllUsed().ForEach(
      [&](const std::string& space, const auto& parts) { used.emplace(space, std::pair(parts[0], parts[1])); });
  return used;
}

}  // namespace

TEST_CASE("who waited for whom is counted by namespace and partition, hold by hold") {
  World world;
  const auto low = Connect(world, 3, -20, kGpu);
  const auto middle = Connect(world, 2, 10, kGpu);
  const auto high = Connect(world, 1, 50, kGpu);
  low->client->claim = InSpace(1, {{"partition", "batch"}});
  high->client->claim = InSpace(2, {{"namespace", "serving"}, {"partition", "no"}});
  world.Report(*low, true);
  world.Report(*high, true);
  fake_now += 4 * policy::kNsPerMs;
  CountAll(world);
  using Pair = std::pair<std::string, std::string>;
  CHECK(Waits(world) == std::map<Pair, std::uint64_t>{{{"batch", "serving"}, 4 * policy::kNsPerMs}});  // it lasts
  world.Report(*middle, true);                                                                         // waits, too
  fake_now += 2 * policy::kNsPerMs;
  world.Report(*high, false);  // `low` now waits for `middle`, which has no claim
  fake_now += 3 * policy::kNsPerMs;
  world.Report(*middle, false);
  fake_now += 5 * policy::kNsPerMs;
  CountAll(world);
  const std::map<Pair, std::uint64_t> expected{{{"batch", "serving"}, 6 * policy::kNsPerMs},
                                               {{"_none", "serving"}, 2 * policy::kNsPerMs},
                                               {{"batch", "_none"}, 3 * policy::kNsPerMs}};
  CHECK(Waits(world) == expected);
  // Another hold for one that is gone when the hold is counted.
  world.Report(*high, true);
  fake_now += 7 * policy::kNsPerMs;
  world.Disconnect(*high);
  CountAll(world);
  CHECK(Waits(world).at({"batch", "serving"}) == 13 * policy::kNsPerMs);
  // All waits together are the time that the classes of clients were held.
  std::uint64_t all = 0;
  for (const auto& [pair, ns] : Waits(world))
    all += ns;
  std::uint64_t held = 0;
  for (const ClassAccount& account : world.scheduler.Records().Metrics().Accounts())
    held += account.total.held_ns;
  CHECK(all == held);
}

TEST_CASE("gained is the GPU time of those that would not have had the GPU without sharing") {
  World world;
  const auto high = Connect(world, 1, 50, kGpu);
  const auto low = Connect(world, 2, -20, kGpu);
  const auto equal = Connect(world, 3, 50, kGpu);
  high->client->claim = InSpace(1, {{"namespace", "serving"}});
  low->client->claim = InSpace(2, {{"namespace", "batch"}});
  equal->client->claim = InSpace(3, {{"namespace", "later"}});
  const auto use = [](Peer& peer, std::uint64_t ns) { peer.ledger->Device(0).gpu_time_ns += ns; };
  fake_now += policy::kNsPerS;
  use(*high, 100);
  use(*low, 40);
  use(*equal, 7);
  CountAll(world);
  const auto first = Used(world);
  CHECK(first.at("serving") == std::pair<std::uint64_t, std::uint64_t>{100, 0});
  CHECK(first.at("batch") == std::pair<std::uint64_t, std::uint64_t>{40, 40});
  CHECK(first.at("later") == std::pair<std::uint64_t, std::uint64_t>{7, 7});  // as important, and came later
  // One of the first client's claim is no gain: the job would have had the GPU.
  low->client->claim = high->client->claim;
  use(*low, 5);
  CountAll(world);
  CHECK(Used(world).at("serving") == std::pair<std::uint64_t, std::uint64_t>{105, 0});
  // Without the first, the next has the GPU.
  world.Disconnect(*high);
  use(*equal, 3);
  CountAll(world);
  CHECK(Used(world).at("later") == std::pair<std::uint64_t, std::uint64_t>{10, 7});
}

TEST_CASE("the largest keys have series, no counter goes back, and nothing is lost or counted twice") {
  TopSeries<std::string, 2> series(3);
  std::map<std::string, std::uint64_t> last;
  std::uint64_t rest = 0;
  std::uint64_t all = 0;
  std::uint64_t random = 1;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t key = (random >> 40) % (i < 10'000 ? 8 : 2'000);
    const std::uint64_t amount = (random >> 20) % 50 * (key + 1);
    series.Add(std::to_string(key), {amount, 2 * amount});
    all += amount;
    if (i % 50 != 0) continue;
    series.Choose();
    std::size_t count = 0;
    series.ForEach([&](const std::string& name, const auto& parts) {
      ++count;
      CHECK(parts[1] == 2 * parts[0]);
      if (parts[0] < last[name]) FAIL(name);
      last[name] = parts[0];
    });
    CHECK(count <= 3);
    CHECK(series.Rest()[0] >= rest);
    rest = series.Rest()[0];
  }
  CHECK(rest <= all);
  // Of eight keys, the largest had series in the end of the first half.
  TopSeries<std::string, 2> few(2);
  for (const auto& [name, amount] : {std::pair("a", 1u), {"b", 2u}, {"c", 10u}, {"d", 20u}})
    few.Add(name, {amount, 0});
  few.Choose();
  few.Add("d", {5, 0});
  few.Add("a", {1, 0});
  std::map<std::string, std::uint64_t> now;
  few.ForEach([&](const std::string& name, const auto& parts) { now[name] = parts[0]; });
  CHECK(now == std::map<std::string, std::uint64_t>{{"c", 0}, {"d", 5}});
  CHECK(few.Rest()[0] == 31);  // 10 and 20 before they had series, and 1 of "a" since
}

TEST_CASE("a space is a namespace, else a partition") {
  CHECK(SpaceOf(nullptr) == "_none");
  CHECK(SpaceOf(InSpace(1, {}).get()) == "_none");
  CHECK(SpaceOf(InSpace(1, {{"namespace", ""}, {"partition", "p"}}).get()) == "p");
  CHECK(SpaceOf(InSpace(1, {{"namespace", std::string(100, 'n')}}).get()).size() == 64);
}
