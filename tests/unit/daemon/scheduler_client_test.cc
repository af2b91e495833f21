// The scheduler and what clients report beyond busy and idle: signs of life, waits, and time slices in force.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/scheduler/scheduler.h"
#include "daemon/scheduler/slice_words.h"
#include "tests/catch.h"
#include "tests/unit/daemon/explained.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("a silent client holds no other until it reports again") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto state = [](const Peer& peer) { return peer.client->attachments.at(0)->silent; };
  const auto pass = [&](std::uint64_t ns) {
    fake_now += ns;
    CHECK(world.scheduler.RenewLeases());
    world.scheduler.Decide();
  };
  const std::uint64_t lease = world.scheduler.BusyLeaseNs();
  CHECK(lease == 300 * policy::kNsPerMs);
  world.Report(*low, true);
  world.Report(*high, true);
  REQUIRE(low->Held(0));
  CHECK((low->board->Word(0) & abi::kMaySpin) != 0);
  // If it renews in time, it holds others without limit, except for the guard.
  policy::Settings settings = world.scheduler.Settings();
  settings.guard_ms_per_s = 0;
  world.scheduler.SetSettings(settings);
  for (int i = 0; i < 100; ++i) {
    high->ledger->Renew();
    low->ledger->Renew();
    pass(lease);
    CHECK(low->Held(0));
  }
  low->ledger->Renew();
  pass(lease / 2);
  CHECK(low->Held(0));
  low->ledger->Renew();
  pass(lease / 2 + 1);
  CHECK(!low->Held(0));
  CHECK(state(*high));
  CHECK(!state(*low));
  const auto& events = world.events.Remembered();
  CHECK(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.kind == EventKind::kSilent; }) == 1);
  low->ledger->Renew();
  pass(10 * lease);
  CHECK(!low->Held(0));
  const Explanation explanation = Explain(world, *high, 3);
  CHECK(explanation.summary.find("it was silent for ") != std::string::npos);
  CHECK(explanation.devices[0].account.phase_ns[static_cast<std::size_t>(Phase::kSilent)] >= 2 * policy::kNsPerS);

  SECTION("it renews") {
    high->ledger->Renew();
    CHECK(high->ledger->WakeDaemon());
    CHECK(world.scheduler.ReadActivity(*high->client));
    world.scheduler.Decide();
    CHECK(low->Held(0));
    CHECK(!state(*high));
  }
  SECTION("it reports that it is busy") {
    world.Report(*high, true);
    CHECK(low->Held(0));
  }
  SECTION("it reports that it is idle") {
    world.Report(*high, false);
    CHECK(!low->Held(0));
    CHECK(!state(*high));
    low->ledger->Renew();
    pass(lease);
    CHECK(!low->Held(0));
  }
  SECTION("it is no longer tracked") {
    world.Disconnect(*low);
    CHECK(!state(*high));
  }
}

TEST_CASE("a client of version 1 renews nothing and is never silent") {
  World world;
  const auto high = world.Connect(1, 50, "0000:c1:00.0", abi::Spoken().front());
  REQUIRE(abi::Spoken().front().version < abi::kRenewalsSince);
  const auto low = world.Connect(2, 0);
  world.Report(*high, true);
  fake_now += 900 * policy::kNsPerMs;  // before the guard's turn
  CHECK(world.scheduler.RenewLeases());
  world.scheduler.Decide();
  CHECK(low->Held(0));
}

TEST_CASE("time slices reach clients that support them, and end with the last reason for them") {
  World world;
  policy::Settings settings = world.scheduler.Settings();
  settings.time_slices = true;
  settings.max_concurrent = 1;
  world.scheduler.SetSettings(settings);
  const auto high = world.Connect(1, 50);
  CHECK(high->board->SliceUs(0) == 0);
  const auto low = world.Connect(2, 0);
  const auto older = world.Connect(3, 0, "0000:c1:00.0", abi::Spoken().front());
  REQUIRE(abi::Spoken().front().version < abi::kSlicesSince);
  CHECK(high->board->SliceUs(0) == 20'000);
  CHECK(low->board->SliceUs(0) == 200);
  CHECK(older->board->SliceUs(0) == 0);
  const auto said = [](const Peer& peer) { return SliceText(*peer.client->attachments.at(0)); };
  CHECK(said(*low) == "time slice 200 us, as soon as it has work");
  CHECK(said(*older) == "no time slices here: the client's shim is of an older release");
  low->ledger->SetSlice(0, abi::SliceState::kInForce, 200);
  CHECK(said(*low) == "time slice 200 us");
  low->ledger->SetSlice(0, abi::SliceState::kRefused, 0);
  CHECK(said(*low) == "no time slices here: the driver refuses them");
  low->ledger->SetSlice(0, abi::SliceState::kNotHere, 0);
  CHECK(said(*low) == "no time slices here: this vendor has none that a process may set");
  low->ledger->SetSlice(0, abi::SliceState::kStalled, 0);
  CHECK(said(*low) == "no time slice for now: with one, no work finished for a second");
  SECTION("the settings change") {
    settings.time_slices = false;
    world.scheduler.SetSettings(settings);
    world.scheduler.Decide();
    CHECK(high->board->SliceUs(0) == 0);
    CHECK(low->board->SliceUs(0) == 0);
    CHECK(said(*low).empty());
  }
  SECTION("the daemon ends") {
    world.scheduler.OpenAll();
    CHECK(high->board->SliceUs(0) == 0);
    CHECK(low->board->SliceUs(0) == 0);
  }
  SECTION("the important client leaves") {
    world.Disconnect(*high);
    CHECK(low->board->SliceUs(0) == 0);
  }
}

TEST_CASE("a client is asked to report its waits, which shut and open others' gates") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  CHECK((high->board->Word(0) & abi::kTellsWaits) != 0);
  CHECK((low->board->Word(0) & (abi::kTellsWaits | abi::kCountMayWait)) == 0);
  CHECK((high->board->Word(0) & abi::kCountMayWait) != 0);
  policy::BenefitMemory& benefit = high->client->group->memory.benefit.Use();
  benefit.mode = benefit.settled = policy::BenefitMemory::Mode::kWaitsWide;
  benefit.next_trial_ns = policy::kNever;
  world.scheduler.Changed(*high->client);
  world.Report(*low, true);
  const auto report = [&](abi::TransitionKind kind) {
    fake_now += policy::kNsPerMs;
    high->ledger->Report(0, kind, fake_now);
    CHECK(world.scheduler.ReadActivity(*high->client));
    world.scheduler.Decide();
  };
  report(abi::TransitionKind::kBusy);
  CHECK(!low->Held(0));
  report(abi::TransitionKind::kWaits);
  CHECK(high->client->attachments.at(0)->busy);
  CHECK(low->Held(0));
  CHECK((low->board->Word(0) & abi::kMaySpin) != 0);
  report(abi::TransitionKind::kBusy);
  CHECK(low->Held(0));  // it lingers
  fake_now += policy::kNsPerMs;
  world.scheduler.Decide();
  CHECK(!low->Held(0));
  report(abi::TransitionKind::kWaits);
  CHECK(low->Held(0));
  report(abi::TransitionKind::kIdle);
  fake_now += policy::kNsPerMs;
  world.scheduler.Decide();
  CHECK(!high->client->attachments.at(0)->waits);
  CHECK(!low->Held(0));
}

TEST_CASE("a client tracked again while it waits is known to wait") {
  World world;
  const auto high = world.Connect(1, 50);
  auto low = world.Connect(2, 0);
  high->ledger->Report(0, abi::TransitionKind::kWaits, fake_now);
  CHECK(world.scheduler.ReadActivity(*high->client));
  world.scheduler.Decide();
  CHECK(high->client->attachments.at(0)->waits);
  world.Disconnect(*low);
  CHECK(!high->Tracked(0));
  CHECK(!high->client->attachments.at(0)->waits);
  low = world.Connect(3, 0);
  CHECK(high->Tracked(0));
  CHECK(high->client->attachments.at(0)->waits);
}

TEST_CASE("a client that floods its ring is served in portions") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  for (int i = 0; i < 3'000; ++i)
    low->ledger->Report(0, i % 2 == 0 ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, 0);
  world.scheduler.ReadActivity(*low->client);
  world.scheduler.Decide();
  CHECK(!world.registry.Devices().begin()->second->attachments[1]->busy);  // the level, not the records, is the truth
  CHECK(world.scheduler.Counts().decisions < 10);
}

TEST_CASE(
    "a client pays for decisions about the clients of its container, and of its user where users name the place") {
  const auto share_beside = [](const std::string& own, const std::string& others) {
    World world;
    const auto client = world.Connect(1, 0, "0000:c1:00.0", abi::Newest(), 0, own);
    std::vector<std::unique_ptr<Peer>> peers;
    for (std::uint64_t pid = 2; pid <= 4; ++pid)
      peers.push_back(world.Connect(pid, 0, "0000:c1:00.0", abi::Newest(), 0, others + std::to_string(pid)));
    return Scheduler::DecisionShareOf(*client->client);
  };
  CHECK(share_beside("container a", "container b") == 0.25);
  CHECK(share_beside("", "container b") == 0.25);
  CHECK(share_beside("user's container a", "user's container b") == 1);
  CHECK(share_beside("pid:[1]", "pid:[2]") == 1);
}
