// A client that lies gains no more than its policy gives. The real scheduler, ledgers and policies, with a clock that
// the test sets, so that shares are exact.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "daemon/scheduler/ledger_cpu_share.h"
#include "tests/catch.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

constexpr std::uint64_t kStep = 100 * policy::kNsPerUs;
constexpr int kSteps = 100'000;  // ten seconds

void Use(World& world, policy::Name name, std::optional<std::uint32_t> max_concurrent = {}) {
  policy::Settings settings;
  settings.name = name;
  settings.linger_us = 0;
  settings.max_concurrent = max_concurrent;
  world.scheduler.SetSettings(settings);
  world.scheduler.Decide();
}

// Runs for ten seconds; `each` runs in every step, before the daemon reads ledgers. Returns the part of the time in
// which the gate of `honest` was open. That client truthfully counts as GPU time all the time that its gate was open.
template <typename Each>
double OpenPart(World& world, Peer& honest, Each each) {
  int open = 0;
  for (int i = 0; i < kSteps; ++i) {
    if (!honest.Held(0)) {
      ++open;
      honest.ledger->Device(0).gpu_time_ns.fetch_add(kStep);
    }
    fake_now += kStep;
    each(i);
    if (world.scheduler.HasWork() || world.scheduler.NextDueNs() <= fake_now) world.scheduler.Decide();
  }
  return static_cast<double>(open) / kSteps;
}

void Tell(World& world, Peer& peer, bool busy) {
  peer.ledger->Report(0, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, fake_now);
  world.scheduler.ReadActivity(*peer.client);
}

}  // namespace

TEST_CASE("share: a client that reports no GPU time, or too much, gets its half and no more") {
  World world;
  Use(world, policy::Name::kShare);
  const auto honest = world.Connect(1, 0);
  const auto liar = world.Connect(2, 0);
  world.Report(*honest, true);
  world.Report(*liar, true);
  std::atomic<std::uint64_t>& claimed = liar->ledger->Device(0).gpu_time_ns;
  SECTION("nothing") {
    CHECK(OpenPart(world, *honest, [](int) {}) >= 0.49);
  }
  SECTION("its counter goes back") {
    CHECK(OpenPart(world, *honest, [&](int i) { claimed = i % 2 == 0 ? 0 : ~0ull; }) >= 0.49);
  }
  SECTION("it flaps between busy and idle, without using anything") {
    CHECK(OpenPart(world, *honest, [&](int i) { Tell(world, *liar, i % 2 == 0); }) >= 0.49);
  }
}

TEST_CASE("priority: an equal that always claims to be busy takes nothing from an honest one") {
  World world;
  SECTION("side by side") {
    Use(world, policy::Name::kPriority);
    const auto top = world.Connect(3, 50);
    const auto honest = world.Connect(1, 0);
    const auto liar = world.Connect(2, 0);
    world.Report(*honest, true);
    CHECK(OpenPart(world, *honest, [&](int) { Tell(world, *liar, true); }) == 1);
  }
  SECTION("in turns, also if it flaps to have another turn at once") {
    const bool flaps = GENERATE(false, true);
    Use(world, policy::Name::kPriority, 1);
    const auto top = world.Connect(3, 50);
    const auto liar = world.Connect(2, 0);
    const auto honest = world.Connect(1, 0);
    world.Report(*liar, true);
    world.Report(*honest, true);
    CHECK(OpenPart(world, *honest, [&](int i) { Tell(world, *liar, !flaps || i % 3 != 0); }) >= 0.49);
  }
  SECTION("a less important one takes nothing at all") {
    Use(world, policy::Name::kPriority);
    const auto honest = world.Connect(1, 50);
    const auto liar = world.Connect(2, 0);
    world.Report(*honest, true);
    // Except for the guard's turns: 10 ms in each second, in which both run.
    CHECK(OpenPart(world, *honest, [&](int i) { Tell(world, *liar, i % 2 == 0); }) == 1);
  }
}

TEST_CASE(
    "deadline: a client that is always late runs first among its equals, and the guard still gives the others turns") {
  World world;
  Use(world, policy::Name::kDeadline);
  const auto above = world.Connect(3, 10);
  const auto honest = world.Connect(1, 0);
  const auto liar = world.Connect(2, 0);
  for (Peer* peer : {honest.get(), above.get()})
    world.Report(*peer, true);
  const auto lie = [&](int i) {
    liar->ledger->Device(0).deadline_ns = i % 2 == 0 ? fake_now : 1;
    Tell(world, *liar, true);
  };
  CHECK(OpenPart(world, *honest, lie) >= 0.0045);  // the device's slots by turns with the liar
  CHECK(!above->Held(0));
}

TEST_CASE(
    "ledger CPU share: a client that floods the daemon gets a part of its time, and a modest client is always served") {
  constexpr std::uint64_t kGreedyNs = 5'000;
  constexpr std::uint64_t kModestNs = 8'000;
  constexpr std::uint64_t kModestEvery = 4'000'000;
  const std::size_t count = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{64}, std::size_t{200});
  struct One {
    LedgerCpuShare cpu_share;
    std::uint64_t spoke = 0;
    std::uint64_t paused_until = 0;
  };
  std::vector<One> greedy(count);
  One modest;
  ReportingClients speakers;
  std::uint64_t now = 5 * policy::kNsPerS;
  const std::uint64_t end = now + 5 * policy::kNsPerS;
  std::uint64_t next_modest = now;
  std::uint64_t greedy_ns = 0;
  const auto serve = [&](One& one, std::uint64_t cost) {
    now += cost;
    speakers.Note(one.spoke, now);
    one.cpu_share.Spend(cost, LedgerCpuShare::ShareOf(speakers.Count()), now);
    if (one.cpu_share.IsSpent(now)) one.paused_until = now + one.cpu_share.PauseNs(now);
  };
  for (std::size_t i = 0; now < end; ++i) {
    if (now >= next_modest) {
      REQUIRE(modest.paused_until == 0);
      serve(modest, kModestNs);
      next_modest += kModestEvery;
    }
    One& one = greedy[i % count];
    if (one.paused_until > now) {
      now += 1'000;  // the thread sleeps
      continue;
    }
    serve(one, kGreedyNs);
    greedy_ns += kGreedyNs;
  }
  // Half of the five seconds, and the credit that each had saved.
  CHECK(static_cast<double>(greedy_ns) <
        0.55 * 5 * policy::kNsPerS + static_cast<double>(count) * LedgerCpuShare::kCreditNs);
  CHECK(speakers.Count() == count + 1);
}

TEST_CASE("a ledger that is overwritten all the time, while the daemon reads and decides") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto liar = world.Connect(3, -10);
  std::atomic<bool> stop = false;
  auto* const ledger = static_cast<abi::Ledger*>(liar->ledger_mapping.Address());
  std::thread scribbler([&] {
    std::mt19937_64 random(1);
    // Valid values, and values beyond every table: they could change between a check and a use.
    const std::array<std::uint64_t, 6> values{0, 1, 2, 63, ~0ull, 1ull << 40};
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t value = values[random() % values.size()];
      abi::Transition& record = ledger->ring[random() % abi::kRingSize];
      std::atomic_ref(record.kind).store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
      std::atomic_ref(record.slot)
          .store(static_cast<std::uint32_t>(values[random() % values.size()]), std::memory_order_relaxed);
      ledger->control.ring_head.store(random() % 3 == 0 ? value : random() % 1000, std::memory_order_relaxed);
      ledger->control.lost.store(random() % 2, std::memory_order_relaxed);
      abi::LedgerDevice& device = ledger->devices[0];
      device.busy.store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
      device.waiters.store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
      device.gpu_time_ns.store(value, std::memory_order_relaxed);
      device.deadline_ns.store(value, std::memory_order_relaxed);
    }
  });
  const std::uint64_t began = fake_now;
  bool busy = false;
  for (int i = 0; i < 20'000; ++i) {
    fake_now += 10 * policy::kNsPerUs;
    world.scheduler.ReadActivity(*liar->client);
    if (i % 7 == 0) Tell(world, *high, busy = !busy);
    if (i == 3) Tell(world, *low, true);
    world.scheduler.Decide();
    REQUIRE(!high->Held(0));
    REQUIRE((!busy || low->Held(0) || i < 7));
    const Attachment& attachment = *liar->client->attachments.at(0);
    REQUIRE(attachment.deadline_ns <= fake_now + policy::kDeadlineLimits.max * policy::kNsPerUs);
    const Account account =
        attachment.history.Since(world.scheduler.Records().Histories(), 0, attachment.MomentAt(fake_now));
    REQUIRE(account.gpu_ns <= fake_now - began);
  }
  stop = true;
  scribbler.join();
}

TEST_CASE("devices that a client invents cost other clients nothing") {
  // Alternately the same two clients on one device, alone, and beside 16,384 invented devices.
  struct Side {
    World world;
    std::unique_ptr<Peer> top = world.Connect(1, 50);
    std::unique_ptr<Peer> low = world.Connect(2, 0);
    std::vector<std::unique_ptr<Peer>> others;
    std::uint64_t Flip(bool busy) {
      const std::uint64_t began = MonotonicNs();
      Tell(world, *top, busy);
      world.scheduler.Decide();
      static_cast<void>(world.scheduler.NextDueNs());
      return MonotonicNs() - began;
    }
  };
  Side alone;
  Side crowded;
  char address[] = "0000:00:00.0/0000";
  for (int i = 0; i < 256; ++i) {
    std::snprintf(address, sizeof address, "0001:%02x:00.0", static_cast<unsigned>(i));
    crowded.others.push_back(crowded.world.Connect(static_cast<std::uint64_t>(100 + i), 0, address));
    for (std::uint32_t slot = 1; slot < 64; ++slot) {
      std::snprintf(address, sizeof address, "0001:%02x:%02x.0", static_cast<unsigned>(i), slot);
      REQUIRE(crowded.world.registry.Attach(*crowded.others.back()->client, {slot, address, "GPU", "amd", 4, {}}));
    }
    crowded.world.scheduler.Changed(*crowded.others.back()->client);
  }
  crowded.world.scheduler.Decide();
  REQUIRE(crowded.world.registry.Devices().size() == 1 + 256 * 64);
  std::vector<std::uint64_t> reference;
  std::vector<std::uint64_t> measured;
  for (int i = 0; i < 401; ++i) {
    fake_now += kStep;
    reference.push_back(alone.Flip(i % 2 == 0));
    measured.push_back(crowded.Flip(i % 2 == 0));
  }
  const auto median = [](std::vector<std::uint64_t>& costs) {
    std::nth_element(costs.begin(), costs.begin() + 200, costs.end());
    return costs[200];
  };
  CHECK(median(measured) < 8 * median(reference));  // it was a thousand times once
}

TEST_CASE("a user with many clients on a device pays for the decisions about them, and their neighbour does not") {
  World world;
  constexpr char kAddress[] = "0000:c1:00.0";
  const auto honest = world.Connect(1, 0, kAddress, abi::Newest(), 1000);
  std::vector<std::unique_ptr<Peer>> crowd;
  world.scheduler.Changed(*honest->client);
  for (int i = 0; i < 99; ++i) {
    // Each has another of the user's uids.
    crowd.push_back(world.Connect(static_cast<std::uint64_t>(10 + i), 0, kAddress, abi::Newest(), 1001));
    crowd.back()->client->identity.uid = static_cast<std::uint32_t>(100'000 + i);
    world.scheduler.Changed(*crowd.back()->client);
  }
  world.scheduler.Decide();
  CHECK(Scheduler::DecisionShareOf(*honest->client) == 0.01);
  CHECK(Scheduler::DecisionShareOf(*crowd[0]->client) == 0.99);
  const auto elsewhere = world.Connect(2, 0, "0000:c2:00.0");
  CHECK(Scheduler::DecisionShareOf(*elsewhere->client) == 1);
}
