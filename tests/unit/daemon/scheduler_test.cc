// The scheduler: gates, held time, tracking, deadlines.
#include "daemon/scheduler/scheduler.h"

#include <algorithm>

#include "daemon/registry/token_bucket.h"
#include "tests/catch.h"
#include "tests/unit/daemon/explained.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;

TEST_CASE("where there are many clients, a transition on which no gate depends waits for the next decision") {
  struct Row {
    const char* name;
    std::size_t clients;  // with the important one
    const char* vendor = "amd";
    policy::Name policy = policy::Name::kPriority;
    std::uint32_t weight = 100;  // of one of them
    bool waits = false;
  };
  for (const Row& row : {Row{.name = "many", .clients = Gatherer::kManyClients, .waits = true},
                         Row{.name = "few", .clients = Gatherer::kManyClients - 1},
                         Row{.name = "they take turns", .clients = Gatherer::kManyClients, .vendor = "nvidia"},
                         Row{.name = "levels", .clients = Gatherer::kManyClients, .policy = policy::Name::kFair},
                         Row{.name = "shares", .clients = Gatherer::kManyClients, .weight = 200}}) {
    INFO(row.name);
    World world;
    world.vendor = row.vendor;
    policy::Settings settings = world.scheduler.Settings();
    settings.name = row.policy;
    world.scheduler.SetSettings(settings);
    const auto high = world.Connect(1, 50);
    std::vector<std::unique_ptr<Peer>> lows;
    while (lows.size() + 1 < row.clients)
      lows.push_back(world.Connect(lows.size() + 2, 0));
    Peer& low = *lows.front();
    low.client->effective.weight = row.weight;
    world.scheduler.Changed(*low.client);
    world.scheduler.Decide();
    const auto read = [&](Peer& peer, bool busy) {
      peer.ledger->Report(0, busy ? abi::TransitionKind::kBusy : abi::TransitionKind::kIdle, fake_now);
      CHECK(world.scheduler.ReadActivity(*peer.client));
    };
    read(low, true);
    CHECK(world.scheduler.HasWork() != row.waits);
    if (!row.waits) continue;
    CHECK(world.scheduler.NextDueNs() <= fake_now + Gatherer::kMayWaitNs);
    const std::uint64_t decisions = world.scheduler.Counts().decisions;
    world.scheduler.Decide();
    CHECK(world.scheduler.Counts().decisions == decisions);
    fake_now += Gatherer::kMayWaitNs;
    world.scheduler.Decide();
    CHECK(world.scheduler.Counts().decisions == decisions + 1);
    read(*high, true);
    CHECK(world.scheduler.HasWork());
    world.scheduler.Decide();
    CHECK(low.Held(0));
    read(low, false);
    CHECK(world.scheduler.HasWork());  // its gate is shut
    world.scheduler.Decide();
    read(low, true);
    world.scheduler.Decide();
    CHECK(low.client->attachments.at(0)->held_since_ns == fake_now);
    // What waits is part of the next decision, whatever that is for.
    read(*high, false);
    world.scheduler.Decide();
    CHECK(!low.Held(0));
    read(low, false);
    read(*high, true);
    world.scheduler.Decide();
    CHECK(low.client->attachments.at(0)->held_since_ns == 0);
  }
}

TEST_CASE("of devices that are due, one comes at a time, with those where something has changed") {
  World world;
  policy::Settings settings = world.scheduler.Settings();
  settings.linger_us = 200;
  world.scheduler.SetSettings(settings);
  struct Two {
    std::unique_ptr<Peer> high;
    std::unique_ptr<Peer> low;
  };
  std::vector<Two> devices;
  for (const char* address : {"0000:c1:00.0", "0000:c2:00.0", "0000:c3:00.0"}) {
    const std::uint64_t pid = 10 * devices.size();
    devices.push_back({world.Connect(pid + 1, 50, address), world.Connect(pid + 2, 0, address)});
    world.Report(*devices.back().low, true);
  }
  for (const std::size_t i : {0u, 1u}) {
    const Two& device = devices[i];
    world.Report(*device.high, true);
    world.Report(*device.high, false);
    REQUIRE(device.low->Held(0));
  }
  fake_now += 300 * policy::kNsPerUs;
  world.Report(*devices[2].high, true);  // decides
  CHECK(devices[2].low->Held(0));
  CHECK(devices[0].low->Held(0) != devices[1].low->Held(0));
  CHECK(!world.scheduler.HasWork());
  REQUIRE(world.scheduler.NextDueNs() <= fake_now);
  world.scheduler.Decide();
  CHECK(!devices[0].low->Held(0));
  CHECK(!devices[1].low->Held(0));
  CHECK(world.scheduler.NextDueNs() > fake_now);
}

TEST_CASE("explain says why it was another's turn") {
  World world;
  world.vendor = "nvidia";
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto lower = world.Connect(3, 0);
  world.Report(*low, true);
  world.Report(*lower, true);
  REQUIRE(lower->Held(0));
  fake_now += policy::kNsPerMs;
  const auto said = [&] { return Explain(world, *lower, 0).causes.at(0).text; };
  CHECK(said() == "turns: it was the turn of pid 2 (priority 0) (1 at a time, turn_ms=100)");
  world.registry.Devices().begin()->second->memory.filling = {.settled = 2, .gain = 0.6F, .gain_of = 2, .most = 3};
  CHECK(said() ==
        "turns: it was the turn of pid 2 (priority 0) (2 at a time: with 2 they got on 82 % faster than with 1, "
        "turn_ms=100)");
  world.registry.Devices().begin()->second->memory.filling = {};
  lower->client->group->memory.launched = 2;
  lower->client->group->memory.ran_ns = 500 * policy::kNsPerMs;
  CHECK(
      said() ==
      "turns: it was the turn of pid 2 (priority 0) (1 at a time, turn_ms=100; its launches take 250 ms each, so that "
      "its turns last longer and come less often)");
}

TEST_CASE("gates follow transitions, and the daemon measures held time") {
  World world;
  const auto high = world.Connect(1, 50);
  CHECK(!high->Tracked(0));
  CHECK(!world.scheduler.RenewLeases());  // nothing tracked: nothing to do
  const auto low = world.Connect(2, 0);
  CHECK(high->Tracked(0));
  CHECK(low->Tracked(0));
  CHECK(high->board->LeaseUntilNs() == fake_now + 100 * policy::kNsPerMs);

  world.Report(*low, true);
  CHECK(!low->Held(0));
  world.Report(*high, true);
  CHECK(low->Held(0));
  const Attachment& attachment = *low->client->attachments.at(0);
  CHECK(attachment.reason.Text() == "pid 1 (priority 50) is busy");
  fake_now += 3 * policy::kNsPerMs;
  CHECK(attachment.HeldNsAt(fake_now) == 3 * policy::kNsPerMs);
  world.Report(*high, false);
  CHECK(!low->Held(0));
  fake_now += 5 * policy::kNsPerMs;
  CHECK(attachment.HeldNsAt(fake_now) == 3 * policy::kNsPerMs);
  CHECK(
      attachment.history.Since(world.scheduler.Records().Histories(), 0, attachment.MomentAt(fake_now)).spans.size() ==
      1);

  // Held while idle is not held time.
  world.Report(*low, false);
  world.Report(*high, true);
  CHECK(low->Held(0));
  fake_now += policy::kNsPerS;
  CHECK(attachment.HeldNsAt(fake_now) == 3 * policy::kNsPerMs);

  const Explanation explanation = Explain(world, *low, 0);
  CHECK(explanation.held_ns == 3 * policy::kNsPerMs);
  REQUIRE(explanation.causes.size() == 1);
  CHECK(explanation.causes[0].text == "priority: pid 1 (priority 50) was busy here");
  CHECK(explanation.causes[0].total.count == 1);
  REQUIRE(explanation.devices.size() == 1);
  const Account& account = explanation.devices[0].account;
  CHECK(account.phase_ns[static_cast<std::size_t>(Phase::kRunning)] == 5 * policy::kNsPerMs);
  CHECK(account.phase_ns[static_cast<std::size_t>(Phase::kIdle)] == policy::kNsPerS);
  REQUIRE(!explanation.remedies.empty());
  CHECK(explanation.remedies[0].command == "xschedctl set 2 --priority 50");
  // Spans and totals are more than a second old, except for the part that a bucket spreads.
  CHECK(Explain(world, *low, 1).spans.empty());
}

TEST_CASE("a client that has ended can be explained, up to its end") {
  World world;
  const auto high = world.Connect(1, 50);
  {
    const auto low = world.Connect(2, 0);
    world.Report(*low, true);
    world.Report(*high, true);
    fake_now += 20 * policy::kNsPerMs;
    world.Disconnect(*low);
  }
  fake_now += 12 * policy::kNsPerS;
  const PastClient* past = world.scheduler.Records().Past().Find(2);
  REQUIRE(past != nullptr);
  const Config config;
  const Explanation explanation =
      ExplainClient(*past, 10, {world.registry, world.scheduler.Records().Histories(), config, fake_now});
  CHECK(explanation.ended_ns == 12 * policy::kNsPerS);
  CHECK(explanation.held_ns == 20 * policy::kNsPerMs);
  CHECK(explanation.summary.find("pid 2 (priority 0, weight 100) ended 12.0 s ago") == 0);
  // No remedy names its pid, because the client has ended.
  for (const Remedy& remedy : explanation.remedies)
    CHECK(remedy.command.find("--pid 2") == std::string::npos);

  for (std::uint64_t pid = 10; pid < 10 + PastClients::kClients; ++pid)
    world.Disconnect(*world.Connect(pid, 0));
  CHECK(world.scheduler.Records().Past().Find(2) == nullptr);
  CHECK(world.scheduler.Records().Past().Find(10) != nullptr);
}

TEST_CASE("events report every phase: tracked, busy, held, opened, idle, untracked") {
  World world;
  const auto high = world.Connect(1, 50);
  {
    const auto low = world.Connect(2, 0);
    world.Report(*high, true);   // shuts the gate of an idle client: no hold
    world.Report(*low, true);    // a hold
    world.Report(*high, false);  // opened
    world.Report(*low, false);
    world.Disconnect(*low);
  }
  std::vector<std::pair<std::uint64_t, EventKind>> kinds;
  for (const Event& event : world.events.Remembered())
    kinds.emplace_back(event.pid, event.kind);
  using K = EventKind;
  CHECK(kinds == std::vector<std::pair<std::uint64_t, K>>{{1, K::kTracked},
                                                          {2, K::kTracked},
                                                          {1, K::kBusy},
                                                          {2, K::kBusy},
                                                          {2, K::kHeld},
                                                          {1, K::kIdle},
                                                          {2, K::kOpened},
                                                          {2, K::kIdle},
                                                          {1, K::kUntracked}});
}

TEST_CASE("gates that do not change are not written") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*high, true);
  const std::uint64_t writes = world.scheduler.Counts().gate_writes;
  const std::uint32_t word = low->board->Word(0);
  world.scheduler.Changed(*low->client);
  world.scheduler.Decide();
  CHECK(world.scheduler.Counts().gate_writes == writes);
  CHECK(low->board->Word(0) == word);
}

TEST_CASE("settings act at the next decision, also when they return to the vendor's default") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto lower = world.Connect(3, 0);
  world.Report(*low, true);
  world.Report(*lower, true);
  const auto set = [&](std::optional<std::uint32_t> max_concurrent) {
    policy::Settings settings = world.scheduler.Settings();
    settings.max_concurrent = max_concurrent;
    world.scheduler.SetSettings(settings);
    world.scheduler.Decide();
  };
  CHECK(!low->Held(0));
  CHECK(!lower->Held(0));
  set(1);
  CHECK(low->Held(0) != lower->Held(0));
  set(std::nullopt);
  CHECK(!low->Held(0));
  CHECK(!lower->Held(0));
}

TEST_CASE("under MPS clients run side by side, with four windows; beside one that is not, they take turns") {
  World world;
  world.vendor = "nvidia";
  world.is_under_mps = true;
  policy::Settings settings = world.scheduler.Settings();
  settings.tolerance_percent = 0;
  world.scheduler.SetSettings(settings);
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto lower = world.Connect(3, 0);
  world.Report(*low, true);
  CHECK(low->board->WindowUs(0) == 4 * settings.window_us);
  world.Report(*lower, true);
  const auto takes_turns = [&] { return low->Held(0) != lower->Held(0); };
  CHECK((!low->Held(0) && !lower->Held(0)));
  world.is_under_mps = false;
  const auto other = world.Connect(4, 0);
  CHECK(takes_turns());
  CHECK((low->Held(0) ? lower : low)->board->WindowUs(0) == settings.window_us);
  world.Disconnect(*other);
  CHECK((!low->Held(0) && !lower->Held(0)));
}

TEST_CASE("events report each beginning and end of a wait") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto kinds = [&] {
    std::string text;
    for (const Event& event : world.events.Remembered()) {
      if (event.pid != 2) continue;
      if (event.kind == EventKind::kBusy) text += "b";
      if (event.kind == EventKind::kIdle) text += "i";
      if (event.kind == EventKind::kHeld) text += "h";
      if (event.kind == EventKind::kOpened) text += "o";
      if (event.kind == EventKind::kUntracked) text += "u";
    }
    return text;
  };
  world.Report(*high, true);
  CHECK(kinds().empty());  // shut, but no thread waits
  world.Report(*low, true);
  CHECK(kinds() == "bh");
  world.Report(*high, false);
  CHECK(kinds() == "bho");
  world.Report(*high, true);
  CHECK(kinds() == "bhoh");
  SECTION("opened and untracked, because the other has gone") {
    world.Disconnect(*high);
    CHECK(kinds() == "bhohou");
  }
  SECTION("idle while held") {
    world.Report(*low, false);
    CHECK(kinds() == "bhohi");
  }
}

TEST_CASE("tracking ends with its cause, and begins from what the ledger says") {
  World world;
  const auto high = world.Connect(1, 50);
  {
    const auto low = world.Connect(2, 0);
    world.Report(*high, true);
    world.Disconnect(*low);
    CHECK(low->board->Word(0) >> abi::kGenerationShift != 0);
    CHECK(!low->Held(0));
  }
  CHECK(!high->Tracked(0));
  CHECK(!world.scheduler.RenewLeases());
  // The level is still busy, so a newcomer of lower priority is held from the start.
  const auto late = world.Connect(3, 0);
  CHECK(high->Tracked(0));
  CHECK(late->Held(0));
}

TEST_CASE("time alone opens a gate when the guard's turn has come") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*low, true);
  world.Report(*high, true);
  const std::uint64_t next = world.scheduler.NextDueNs();
  CHECK(next == fake_now + 990 * policy::kNsPerMs);
  fake_now = next;
  world.scheduler.Decide();
  CHECK(!low->Held(0));
  fake_now = world.scheduler.NextDueNs();
  world.scheduler.Decide();
  CHECK(low->Held(0));
}

TEST_CASE("opening all gates ends decisions") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*high, true);
  CHECK(low->Held(0));
  world.scheduler.OpenAll();
  CHECK(!low->Held(0));
  CHECK(!high->Tracked(0));
  world.scheduler.Changed(*high->client);
  world.scheduler.Decide();
  CHECK(!low->Tracked(0));
  CHECK(world.scheduler.NextDueNs() == policy::kNever);
}

TEST_CASE("the event memory is bounded") {
  EventLog log;
  for (std::size_t i = 0; i < EventLog::kRemembered + 10; ++i) {
    Event event;
    event.time_ns = i;
    log.Add(event);
  }
  CHECK(log.Remembered().size() == EventLog::kRemembered);
  CHECK(log.Remembered().front().time_ns == 10);
}

TEST_CASE("a token bucket gives its burst, then its rate") {
  TokenBucket bucket(10, 2);
  CHECK(bucket.Take(1'000'000'000));
  CHECK(bucket.Take(1'000'000'000));
  CHECK(!bucket.Take(1'000'000'000));
  CHECK(!bucket.Take(1'050'000'000));
  CHECK(bucket.Take(1'110'000'000));
}

TEST_CASE("late work is reported and counted") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  const auto late = [&] {
    std::vector<std::string> texts;
    for (const Event& event : world.events.Remembered()) {
      if (event.kind == EventKind::kLate) texts.push_back(event.ReasonText());
    }
    return texts;
  };
  int callbacks = 0;
  world.scheduler.OnLate([&](const Client& client) {
    CHECK(&client == low->client);
    ++callbacks;
  });
  const Attachment& attachment = *low->client->attachments.at(0);
  const std::uint64_t start = fake_now;
  world.ReportDeadline(*low, start + 10 * policy::kNsPerMs);
  CHECK(attachment.deadline_ns == start + 10 * policy::kNsPerMs);

  // Another deadline is a reason to decide again, even without becoming idle.
  const std::uint64_t decisions = world.scheduler.Counts().decisions;
  fake_now += policy::kNsPerMs;
  world.ReportDeadline(*low, start + 5 * policy::kNsPerMs);
  CHECK(attachment.deadline_ns == start + 5 * policy::kNsPerMs);
  CHECK(world.scheduler.Counts().decisions == decisions + 1);

  SECTION("in time") {
    fake_now = start + 5 * policy::kNsPerMs;
    world.Report(*low, false);
    CHECK(late().empty());
    CHECK(low->client->late_total == 0);
    CHECK(callbacks == 0);
    CHECK(attachment.deadline_ns == 0);
  }
  SECTION("late") {
    fake_now = start + 8 * policy::kNsPerMs + 200 * policy::kNsPerUs;
    world.Report(*low, false);
    CHECK(late() == std::vector<std::string>{"finished 3.2 ms after its deadline"});
    CHECK(low->client->late_total == 1);
    CHECK(callbacks == 1);
  }
  SECTION("late, while other work goes on") {
    fake_now = start + 6 * policy::kNsPerMs;
    world.ReportDeadline(*low, start + 20 * policy::kNsPerMs);
    CHECK(late() == std::vector<std::string>{"finished 1.0 ms after its deadline"});
    // More urgent work came: the work that was late already is not finished.
    fake_now = start + 30 * policy::kNsPerMs;
    world.ReportDeadline(*low, start + 15 * policy::kNsPerMs);
    CHECK(low->client->late_total == 1);
  }
  SECTION("all are counted, but the log is not flooded") {
    for (int i = 0; i < 1'000; ++i) {
      world.ReportDeadline(*low, fake_now);
      fake_now += 100 * policy::kNsPerUs;
      world.Report(*low, false);
    }
    CHECK(low->client->late_total == 1'000);
    CHECK(Explain(world, *low, 0).devices.at(0).account.late == 1'000);
    CHECK(late().size() < 30);
  }
  SECTION("nonsense does not overflow a policy's sums") {
    world.ReportDeadline(*low, ~std::uint64_t{0});
    CHECK(attachment.deadline_ns < fake_now + 7'200 * policy::kNsPerS);
  }
  SECTION("an untracked client has none") {
    world.Disconnect(*high);
    CHECK(attachment.deadline_ns == 0);
    CHECK(!attachment.busy);
  }
}
