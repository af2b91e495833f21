// What the core's operations change for a client, without sockets.
#include "daemon/core.h"

#include <algorithm>

#include "daemon/policy/benefit.h"
#include "daemon/registry/effective_words.h"
#include "tests/catch.h"
#include "tests/unit/daemon/believing.h"

using namespace xschedd;

namespace {

NewClient Make(std::uint64_t pid) {
  NewClient fresh;
  fresh.identity.pid = pid;
  fresh.identity.uid = 1000;
  return fresh;
}

}  // namespace

TEST_CASE("an administrator's weight counts until it is reset, and hints are kept") {
  boost::asio::io_context io;
  Config config;
  config.ceilings[1000] = {.priority = 100, .weight = 400};
  Core core(io, {}, config);
  Client& client = core.AddClient(Make(1));
  const Actor by{7, 0};
  REQUIRE(core.SetHints(client, {.priority = 9, .weight = 250}));
  CHECK(client.effective.weight == 250);

  const auto with = [&](std::optional<int> admin, std::optional<std::uint32_t> admin_weight) {
    ClientSettings settings = SettingsOf(client);
    settings.admin = admin;
    settings.admin_weight = admin_weight;
    return core.EffectiveIf({&client}, [&](const Client&) { return settings; }).front();
  };
  CHECK(with(client.admin, 300).weight == 300);
  CHECK(client.effective.weight == 250);
  core.SetWeight({&client}, 300, by);
  CHECK(client.effective.weight == 300);
  CHECK(client.effective.weight_source == PrioritySource::kAdmin);
  CHECK(client.effective.priority == 9);
  CHECK(core.Events().Remembered().back().ReasonText() == "set by uid 0 (pid 7)");
  core.SetPriority({&client}, 20, by);
  CHECK(client.effective.weight == 300);
  CHECK(with(std::nullopt, client.admin_weight).priority == 9);
  CHECK(with(std::nullopt, client.admin_weight).weight == 300);
  core.SetWeight({&client}, 5'000, by);
  CHECK(client.effective.weight == 400);
  CHECK(client.effective.weight_limited);
  core.SetWeight({&client}, std::nullopt, by);
  CHECK(client.effective.weight == 250);
  CHECK(client.effective.priority == 20);
}

TEST_CASE("what was learnt of a process stays known when it connects again, and of no other") {
  using Mode = policy::BenefitMemory::Mode;
  boost::asio::io_context io;
  Core core(io, {}, test::Believing());
  const auto make = [](std::uint64_t start_ticks) {
    NewClient fresh = Make(1);
    fresh.identity.key.start_ticks = start_ticks;
    return fresh;
  };
  Client& client = core.AddClient(make(5));
  REQUIRE(core.AttachDevice(client, {0, "0000:c1:00.0", "GPU", "amd", 304, {}}));
  client.group->memory.benefit.Use().settled = Mode::kFree;
  core.RemoveClient(client.id, "disabled");
  Client& again = core.AddClient(make(5));
  CHECK(again.group->memory.benefit->settled == Mode::kFree);
  CHECK(core.AddClient(make(6)).group->memory.benefit->settled == Mode::kHeld);
  // A group that has an answer of its own keeps it.
  policy::BenefitSlot known;
  known.Use().wait_ns = 1;
  policy::Recall(known, Mode::kFree);
  CHECK(known->settled == Mode::kHeld);
}

TEST_CASE("another process of a program begins with what was learnt of the first") {
  using Mode = policy::BenefitMemory::Mode;
  boost::asio::io_context io;
  Core core(io, {}, test::Believing());
  std::uint64_t pid = 0;
  const auto add = [&](const std::string& command, std::uint32_t uid = 1000, const std::string& place = {}) -> Client& {
    NewClient fresh = Make(++pid);
    fresh.identity.uid = uid;
    fresh.identity.exe = "/usr/bin/python3";
    fresh.identity.place = place;
    Client& client = core.AddClient(std::move(fresh));
    core.SetCommand(client, command);
    return client;
  };
  const auto answer_of = [](const Client& client) { return client.group->memory.benefit->settled; };
  Client& first = add("python3 serve.py");
  CHECK(answer_of(first) == Mode::kHeld);
  REQUIRE(core.AttachDevice(first, {0, "0000:c1:00.0", "GPU", "amd", 304, {}}));
  policy::BenefitMemory& known = first.group->memory.benefit.Use();
  known.settled = Mode::kFree;

  SECTION("not before that is known") {
    CHECK(answer_of(add("python3 serve.py")) == Mode::kHeld);
  }
  known.wait_ns = 1;
  REQUIRE(policy::IsSettled(known));
  SECTION("while it runs") {
    CHECK(answer_of(add("python3 serve.py")) == Mode::kFree);
    CHECK(core.Events().Remembered().back().ReasonText() ==
          "begins with what was learnt of pid 1, which has the same command");
  }
  SECTION("after it has ended") {
    core.RemoveClient(first.id, "done");
    CHECK(answer_of(add("python3 serve.py")) == Mode::kFree);
  }
  SECTION("not of another command, an unknown one, another user or another place") {
    CHECK(answer_of(add("python3 train.py")) == Mode::kHeld);
    CHECK(answer_of(add("")) == Mode::kHeld);
    CHECK(answer_of(add("python3 serve.py", 1001)) == Mode::kHeld);
    CHECK(answer_of(add("python3 serve.py", 1000, "container")) == Mode::kHeld);
    core.RemoveClient(first.id, "done");
    CHECK(answer_of(add("python3 serve.py", 1001)) == Mode::kHeld);
  }
  SECTION("nor if it had an answer itself before it connected again") {
    const auto again = [&]() -> Client& {
      NewClient fresh = Make(50);
      fresh.identity.exe = "/usr/bin/python3";
      fresh.identity.key.start_ticks = 5;
      return core.AddClient(std::move(fresh));
    };
    Client& own = again();
    REQUIRE(core.AttachDevice(own, {0, "0000:c1:00.0", "GPU", "amd", 304, {}}));
    own.group->memory.benefit.Use().settled = Mode::kBeside;
    core.RemoveClient(own.id, "disabled");
    Client& back = again();
    core.SetCommand(back, "python3 serve.py");
    CHECK(answer_of(back) == Mode::kBeside);
  }
  SECTION("nor if that is to hold others, which it does anyway") {
    known.settled = Mode::kHeld;
    const std::size_t events = core.Events().Remembered().size();
    add("python3 serve.py");
    CHECK(core.Events().Remembered().size() == events + 1);
  }
}

TEST_CASE("an overridden hint is explained") {
  boost::asio::io_context io;
  Config config;
  config.ceilings[1000] = {.priority = 5, .weight = 50};
  Core core(io, {}, config);
  Client& client = core.AddClient(Make(1));
  CHECK(HintNote(client, core.Settings()).empty());
  REQUIRE(core.SetHints(client, {.weight = 90}));
  CHECK(HintNote(client, core.Settings()) == "weight hint 90 limited to 50 by the ceiling of uid 1000");
  REQUIRE(core.SetHints(client, {.priority = 10, .weight = 90}));
  CHECK(HintNote(client, core.Settings()) ==
        "priority hint 10 limited to 5 by the ceiling of uid 1000; weight hint 90 limited to 50 by the ceiling of uid "
        "1000");
  core.SetWeight({&client}, 20, {1, 0});
  core.SetPriority({&client}, -1, {1, 0});
  CHECK(HintNote(client, core.Settings()) ==
        "priority hint 10 not used: an administrator set -1; weight hint 90 not used: an administrator set 20");
}

TEST_CASE("an administrator's setting for one member binds the whole group") {
  boost::asio::io_context io;
  Config config = test::Believing();
  config.rules.push_back({.exe = "ruled", .priority = -20, .weight = 50});
  Core core(io, {}, config);
  const Actor admin{7, 0, true};
  const Actor owner{8, 1000, false};
  std::vector<std::unique_ptr<Channel>> channels;
  for (int i = 0; i < 3; ++i)
    channels.push_back(Channel::Make().value());
  const auto add = [&](std::uint64_t pid, std::optional<int> hint, const std::string& exe = "") -> Client& {
    NewClient fresh = Make(pid);
    fresh.identity.exe = exe;
    fresh.identity.may_raise = true;
    fresh.group_name = "job";
    fresh.hints.priority = hint;
    fresh.channel = channels[pid - 1].get();
    return core.AddClient(std::move(fresh));
  };
  const auto attach = [&](Client& client) {
    REQUIRE(core.AttachDevice(client, {0, "0000:c1:00.0", "GPU", "amd", 4, {}}));
  };
  Client& job = add(1, 0);
  attach(job);
  Client& helper = add(2, 100);
  REQUIRE(job.group == helper.group);
  // Without a device it does not count; with one it is a rank like any other.
  CHECK(job.effective.priority == 0);
  CHECK(helper.effective.priority == 100);
  attach(helper);
  CHECK(job.effective.priority == 100);
  CHECK(job.effective.source == PrioritySource::kGroup);
  CHECK(HintNote(job, core.Settings()) == "priority hint 0 not used: its group has 100");

  SECTION("by an administrator") {
    core.SetPriority({&job}, -100, admin);
    for (const Client* member : {&job, &helper})
      CHECK(member->effective.priority == -100);
    CHECK(job.effective.source == PrioritySource::kAdmin);
    CHECK(helper.effective.source == PrioritySource::kGroup);
    REQUIRE(core.SetHints(helper, {.priority = 90}));
    core.SetPriority({&helper}, 80, owner);
    CHECK(job.effective.priority == -100);
    CHECK(helper.effective.priority == -100);
    Client& late = add(3, 100);
    attach(late);
    CHECK(late.effective.priority == -100);
    CHECK(job.effective.priority == -100);
    // Of two administrators' values the higher counts, and EffectiveIf predicts it.
    const auto with = [](int priority) {
      return [priority](const Client& client) {
        ClientSettings settings = SettingsOf(client);
        settings.admin = priority;
        return settings;
      };
    };
    CHECK(core.EffectiveIf({&helper}, with(-50)).front().priority == -50);
    for (const Effective& after : core.EffectiveIf({&job, &helper, &late}, with(-30)))
      CHECK(after.priority == -30);
    core.SetPriority({&helper}, -50, admin);
    CHECK(job.effective.priority == -50);
    core.SetPriority({&helper}, std::nullopt, admin);
    CHECK(job.effective.priority == -100);
    core.SetPriority({&job}, std::nullopt, admin);
    CHECK(job.effective.priority == 100);
  }
  SECTION("by a rule") {
    Client& ruled = add(3, {}, "ruled");
    attach(ruled);
    CHECK(job.effective.priority == -20);
    CHECK(helper.effective.priority == -20);
    CHECK(helper.effective.weight == 50);
    CHECK(ruled.effective.source == PrioritySource::kRule);
    core.RemoveClient(ruled.id, "test");
    CHECK(job.effective.priority == 100);
    CHECK(job.effective.weight == 100);
  }
  SECTION("a member's setting leaves with it") {
    core.RemoveClient(helper.id, "test");
    CHECK(job.effective.priority == 0);
    CHECK(job.effective.source == PrioritySource::kHint);
  }
}

TEST_CASE("a user with many uids gets one user's share of the log and of decisions") {
  constexpr std::uint32_t kAlice = 1000;
  constexpr std::uint32_t kFirst = 100'000;
  boost::asio::io_context io;
  Core core(io, {}, Config{});
  core.SetOwnerOf([](std::uint32_t uid) { return uid >= kFirst ? kAlice : uid; });
  const auto flood = [&](auto uid_of) {
    for (std::uint32_t i = 0; i < 300; ++i) {
      core.Refused(uid_of(i), "it belongs to another user");
      NewClient fresh = Make(i + 1);
      fresh.identity.uid = uid_of(i);
      core.AddClient(std::move(fresh));
    }
  };
  flood([](std::uint32_t i) { return kFirst + i; });
  const auto refusals = [&] {
    const auto events = core.Events().Remembered();
    return std::count_if(events.begin(), events.end(), [](const Event& e) { return e.kind == EventKind::kRefused; });
  };
  CHECK(static_cast<double>(refusals()) <= kRefusalLines.burst + 1);  // one user's; a slow machine may allow one more
  CHECK(core.ClientLinesLeftOut() >= 90);
  for (const auto& [id, client] : core.Clients().Clients())
    CHECK(client->identity.owner == kAlice);
  // Another user's are unaffected.
  const auto before = refusals();
  core.Refused(1001, "another's");
  CHECK(refusals() == before + 1);
  const std::uint64_t left_out = core.ClientLinesLeftOut();
  NewClient other = Make(1'001);
  other.identity.uid = 1001;
  core.AddClient(std::move(other));
  CHECK(core.ClientLinesLeftOut() == left_out);
}
