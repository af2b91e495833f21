// The state that policies get: GPU time, bursts, deadlines, weights.
#include "daemon/scheduler/gather.h"

#include <map>
#include <random>

#include "daemon/registry/gpu_account.h"
#include "daemon/scheduler/share_owner.h"
#include "tests/catch.h"
#include "tests/unit/daemon/explained.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;
using policy::kNsPerMs;
using policy::kNsPerS;
using policy::kNsPerUs;

namespace {

// The cluster of the first device: the one that the scheduler keeps, or one made by `gatherer`.
const policy::State& StateOf(World& world, Gatherer& gatherer) {
  return gatherer.Gather(*world.registry.Devices().begin()->second, world.scheduler.Settings(), fake_now).state;
}

}  // namespace

TEST_CASE("an owner is a job, a pod, a user or a claim, or without a claim a user of this machine") {
  const auto owner = [](const ClaimLabels& labels, const std::string& name = "c", std::uint32_t uid = 7) {
    Client client;
    client.identity.owner = uid;
    Claim claim;
    claim.name = name;
    claim.labels = labels;
    if (!name.empty()) client.claim = std::make_shared<const Claim>(claim);
    return ShareOwnerOf(client);
  };
  CHECK(owner({{"job", "17"}, {"step", "0"}}, "a") == owner({{"job", "17"}, {"step", "1"}, {"user", "x"}}, "b"));
  CHECK(owner({{"job", "17"}}) != owner({{"job", "18"}}));
  CHECK(owner({{"pod", "web"}, {"namespace", "ml"}}, "a") == owner({{"pod", "web"}, {"namespace", "ml"}}, "b"));
  CHECK(owner({{"pod", "web"}, {"namespace", "ml"}}) != owner({{"pod", "web"}, {"namespace", "ci"}}));
  CHECK(owner({{"user", "x"}}, "a") == owner({{"user", "x"}}, "b"));
  CHECK(owner({}, "a") != owner({}, "b"));
  CHECK(owner({}, "a", 1) == owner({}, "a", 2));
  CHECK(owner({}, "", 1) != owner({}, "", 2));
  CHECK(owner({}, "", 1) == owner({}, "", 1));
  const auto in = [](const std::string& place) {
    Client client;
    client.identity.place = place;
    return ShareOwnerOf(client);
  };
  CHECK(in("container " + std::string(64, 'a')) != in("container " + std::string(64, 'b')));
  CHECK(in("container " + std::string(64, 'a')) != in(""));
}

TEST_CASE("groups of one owner share its number, and other owners have others") {
  World world;
  const auto one = world.Connect(1, 0, "0000:c1:00.0", abi::Newest(), 1000);
  const auto two = world.Connect(2, 0, "0000:c1:00.0", abi::Newest(), 1000);
  const auto other = world.Connect(3, 0, "0000:c1:00.0", abi::Newest(), 1001);
  Gatherer gatherer;
  const policy::State& state = StateOf(world, gatherer);
  std::map<std::uint64_t, std::uint32_t> owners;
  for (const policy::Tenant& tenant : state.tenants)
    owners[tenant.client] = state.groups[tenant.group].owner;
  CHECK(owners.at(one->client->id) == owners.at(two->client->id));
  CHECK(owners.at(one->client->id) != owners.at(other->client->id));
}

TEST_CASE("a group's GPU time is counted if one of its clients has a claim") {
  World world;
  const auto one = world.Connect(1, 0, "0000:c1:00.0");
  const auto other = world.Connect(2, 0, "0000:c1:00.0");
  SetClaim(*one->client, std::make_shared<const Claim>());
  world.scheduler.Changed(*one->client);  // as the core does
  Gatherer gatherer;
  const policy::State& state = StateOf(world, gatherer);
  std::map<std::uint64_t, bool> accounted;
  for (const policy::Tenant& tenant : state.tenants)
    accounted[tenant.client] = state.groups[tenant.group].accounted;
  CHECK(accounted.at(one->client->id));
  CHECK(!accounted.at(other->client->id));
}

TEST_CASE("explain divides the part that is due to clients between owners first") {
  World world;
  const auto one = world.Connect(1, 0, "0000:c1:00.0", abi::Newest(), 1000);
  const auto two = world.Connect(2, 0, "0000:c1:00.0", abi::Newest(), 1000);
  const auto other = world.Connect(3, 0, "0000:c1:00.0", abi::Newest(), 1001);
  const auto important = world.Connect(4, 50, "0000:c1:00.0", abi::Newest(), 1001);  // so that all are tracked
  const auto due = [&](const Peer& peer) {
    const double weight = peer.client->effective.weight;
    return weight / static_cast<double>(Explain(world, peer, 0).devices.at(0).weight_level);
  };
  for (const auto* peer : {&one, &two, &other})
    world.Report(**peer, true);
  fake_now += kNsPerMs;
  CHECK(due(*one) == 0.25);
  CHECK(due(*two) == 0.25);
  CHECK(due(*other) == 0.5);
}

TEST_CASE("GPU time is the counter's growth, at most the time that passed") {
  struct Step {
    std::uint64_t at_ms;
    std::uint64_t counter_ms;
    std::uint64_t ran_ms;  // expected
  };
  struct Case {
    const char* what;
    std::vector<Step> steps;
  };
  const Case cases[] = {
      {"GPU time from before it was tracked does not count", {{1, 1'000, 0}, {2, 1'001, 1}}},
      {"a long kernel is counted when it ends", {{60, 1'000, 0}, {61, 1'050, 50}}},
      {"more than the time that passed is not believed", {{10, 900'000, 10}, {11, 900'001, 1}}},
      {"a counter that goes back adds nothing", {{10, 1'005, 5}, {20, 3, 0}, {30, 8, 5}}},
      {"what was not believed is not added later", {{10, 9'000, 10}, {1'000, 9'001, 1}}},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    const std::uint64_t start = 1'000 * kNsPerS;
    GpuAccount account;
    account.Start(1'000 * kNsPerMs, start);
    account.Busy(start);
    for (const Step& step : one.steps) {
      account.Read(step.counter_ms * kNsPerMs, start + step.at_ms * kNsPerMs);
      CHECK(account.TakeRanNs() == step.ran_ms * kNsPerMs);
      CHECK(account.TakeRanNs() == 0);
    }
  }
}

TEST_CASE("GPU time cannot be claimed for idle time") {
  const std::uint64_t start = 1'000 * kNsPerS;
  GpuAccount account;
  account.Start(0, start);
  account.Busy(start + 3'600 * kNsPerS);
  account.Read(3'000 * kNsPerS, start + 3'600 * kNsPerS + 5 * kNsPerMs);
  CHECK(account.TakeRanNs() <= 15 * kNsPerMs);
}

TEST_CASE("the usual burst follows the longest recent complete burst") {
  std::uint64_t now = 1'000 * kNsPerS;
  BurstClock clock;
  const auto burst = [&](std::uint64_t open_ms, std::uint64_t held_ms, bool whole) {
    clock.Begin(whole, now);
    const std::uint64_t held_since = now;
    now += held_ms * kNsPerMs;
    CHECK(clock.OpenNs(now, held_since) == 0);
    clock.AddHeld(held_ms * kNsPerMs);
    now += open_ms * kNsPerMs;
    CHECK(clock.OpenNs(now, 0) == open_ms * kNsPerMs);
    clock.End(now);
    CHECK(clock.OpenNs(now, 0) == 0);
    now += 50 * kNsPerMs;
  };
  burst(90, 0, false);
  CHECK(clock.UsualNs() == 0);
  burst(8, 20, true);
  CHECK(clock.UsualNs() == 8 * kNsPerMs);
  burst(16, 0, true);
  CHECK(clock.UsualNs() == 16 * kNsPerMs);
  burst(8, 100, true);
  CHECK(clock.UsualNs() == 15'875 * kNsPerUs);
  clock.Begin(true, now);
  clock.Abandon();
  CHECK(clock.OpenNs(now + kNsPerS, 0) == 0);
  CHECK(clock.UsualNs() == 15'875 * kNsPerUs);
}

TEST_CASE("a tenant is described by its burst, its deadlines and what it ran since the last decision") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto look = [&]() -> policy::Tenant {
    Gatherer gatherer;
    const policy::State& state = StateOf(world, gatherer);
    REQUIRE(state.tenants.size() == 2);
    return state.tenants[1];
  };
  CHECK(look().busy_since_ns == 0);
  const std::uint64_t start = fake_now;
  low->ledger->Device(0).gpu_time_ns = 500 * kNsPerMs;  // from before
  REQUIRE(world.registry.SetDeadline(*low->client, 33'000, std::nullopt));
  world.scheduler.Changed(*low->client);
  world.scheduler.Decide();
  CHECK(look().deadline_after_ns == 33 * kNsPerMs);

  fake_now += 10 * kNsPerMs;
  world.ReportDeadline(*low, start + 43 * kNsPerMs);
  CHECK(look().busy_since_ns == fake_now);
  CHECK(look().deadline_ns == start + 43 * kNsPerMs);
  look();
  fake_now += 6 * kNsPerMs;
  low->ledger->Device(0).gpu_time_ns += 6 * kNsPerMs;
  CHECK(look().ran_ns == 6 * kNsPerMs);
  CHECK(look().ran_ns == 0);
  CHECK(!look().is_in_flight);
  low->ledger->Device(0).in_flight = 2;
  CHECK(look().is_in_flight);
  fake_now += 2 * kNsPerMs;
  low->ledger->Device(0).gpu_time_ns += 2 * kNsPerMs;
  world.Report(*low, false);
  const policy::Tenant idle = look();
  CHECK(!idle.busy);
  CHECK(!idle.is_in_flight);
  CHECK(idle.busy_since_ns == 0);
  CHECK(idle.idle_since_ns == fake_now);
  CHECK(idle.burst_ns == 0);
  CHECK(idle.usual_ns != 0);
  CHECK(idle.deadline_ns == 0);
  CHECK(idle.deadline_after_ns == 33 * kNsPerMs);
}

TEST_CASE("a kept cluster equals a rebuilt one") {
  World world;
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint64_t i = 0; i < 6; ++i)
    peers.push_back(world.Connect(i + 1, static_cast<int>(i % 3) * 10));
  std::minstd_rand random(7);
  Gatherer gatherer;
  for (int step = 0; step < 300; ++step) {
    fake_now += random() % 5 * kNsPerMs;
    Peer& peer = *peers[random() % peers.size()];
    peer.ledger->Device(0).gpu_time_ns += random() % 3 * kNsPerMs;
    peer.ledger->Device(0).in_flight = random() % 2;
    peer.ledger->Device(0).deadline_ns = random() % 2 * (fake_now + random() % 10 * kNsPerMs);
    world.Report(peer, random() % 2 == 0);
    const policy::State kept = StateOf(world, gatherer);
    world.scheduler.Changed(*peer.client);  // forgets
    Gatherer fresh;
    Device& device = *world.registry.Devices().begin()->second;
    const policy::State anew = fresh.Gather(device, world.scheduler.Settings(), fake_now).state;
    fresh.Forget(device);
    REQUIRE(anew.tenants.size() == kept.tenants.size());
    for (std::size_t i = 0; i < kept.tenants.size(); ++i) {
      INFO("step " << step << ", tenant " << i);
      const policy::Tenant& a = kept.tenants[i];
      const policy::Tenant& b = anew.tenants[i];
      CHECK(a.client == b.client);
      CHECK(a.busy == b.busy);
      CHECK(a.is_in_flight == b.is_in_flight);
      CHECK(a.idle_since_ns == b.idle_since_ns);
      CHECK(a.busy_since_ns == b.busy_since_ns);
      CHECK(a.burst_ns == b.burst_ns);
      CHECK(a.usual_ns == b.usual_ns);
      CHECK(a.deadline_ns == b.deadline_ns);
      CHECK(kept.groups[a.group].memory == anew.groups[b.group].memory);
    }
    world.scheduler.Decide();
  }
}

TEST_CASE("a group weighs as much as its heaviest client") {
  World world;
  const auto first = world.Connect(1, 0);
  const auto second = world.Connect(2, 0);
  first->client->effective.weight = 30;
  second->client->effective.weight = 70;
  for (Client* client : {first->client, second->client}) {
    world.scheduler.Changed(*client);
    world.registry.MoveToGroup(*client, "job");
    world.scheduler.Changed(*client);
  }
  world.scheduler.Decide();
  Gatherer gatherer;
  const policy::State& state = StateOf(world, gatherer);
  REQUIRE(state.groups.size() == 1);
  CHECK(state.groups[0].weight == 70);
}

TEST_CASE("the shortest of the deadlines on a device counts") {
  Registry registry;
  Client& client = registry.Add({}, 0);
  const Attachment& first = **registry.Attach(client, {0, "0000:c1:00.0", "", "", 0, {}});
  const Attachment& second = **registry.Attach(client, {1, "0000:c2:00.0", "", "", 0, {}});
  REQUIRE(registry.AddQueue(client, {7, 0, 0, 0, 0, 0}, 10));
  REQUIRE(registry.SetDeadline(client, 5'000, 7));
  CHECK(first.deadline_after_ns == 5 * kNsPerMs);
  CHECK(second.deadline_after_ns == 0);
  REQUIRE(registry.SetDeadline(client, 9'000, std::nullopt));
  CHECK(first.deadline_after_ns == 5 * kNsPerMs);
  CHECK(second.deadline_after_ns == 9 * kNsPerMs);
  REQUIRE(registry.SetDeadline(client, 3'000, kDefaultStream));
  CHECK(first.deadline_after_ns == 3 * kNsPerMs);
  REQUIRE(registry.SetDeadline(client, 0, kDefaultStream));
  REQUIRE(registry.RemoveQueue(client, 7));
  CHECK(first.deadline_after_ns == 9 * kNsPerMs);
  REQUIRE(registry.SetDeadline(client, 0, std::nullopt));
  CHECK(second.deadline_after_ns == 0);
  CHECK(registry.SetDeadline(client, 1, 8).error().what == "queue 8 is not known");
  // A device attached later gets the earlier hint.
  REQUIRE(registry.SetDeadline(client, 4'000, std::nullopt));
  CHECK((*registry.Attach(client, {2, "0000:c3:00.0", "", "", 0, {}}))->deadline_after_ns == 4 * kNsPerMs);
}
