// What the core's operations change of a client, without sockets.
#include "daemon/core.h"

#include "tests/catch.h"

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
  config.ceilings[1000].weight = 400;
  Core core(io, {}, config);
  Client& client = core.AddClient(Make(1));
  const Actor by{7, 0};
  REQUIRE(core.SetHints(client, {.priority = 9, .weight = 250}));
  CHECK(client.effective.weight == 250);

  const auto with = [&](std::optional<int> admin, std::optional<std::uint32_t> admin_weight) {
    ClientSettings settings = SettingsOf(client);
    settings.admin = admin;
    settings.admin_weight = admin_weight;
    return core.EffectiveIf(client, settings);
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

TEST_CASE("hints that something goes before are explained") {
  boost::asio::io_context io;
  Config config;
  config.ceilings[1000] = {.priority = 5, .weight = 50};
  Core core(io, {}, config);
  Client& client = core.AddClient(Make(1));
  CHECK(core.HintNote(client).empty());
  REQUIRE(core.SetHints(client, {.weight = 90}));
  CHECK(core.HintNote(client) == "weight hint 90 limited to 50 by the ceiling of uid 1000");
  REQUIRE(core.SetHints(client, {.priority = 10, .weight = 90}));
  CHECK(core.HintNote(client) ==
        "priority hint 10 limited to 5 by the ceiling of uid 1000; weight hint 90 limited to 50 by the ceiling of uid "
        "1000");
  core.SetWeight({&client}, 20, {1, 0});
  core.SetPriority({&client}, -1, {1, 0});
  CHECK(core.HintNote(client) ==
        "priority hint 10 not used: an administrator set -1; weight hint 90 not used: an administrator set 20");
}
