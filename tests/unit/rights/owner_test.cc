// Settings by a client's own user, combined with hints, rules and administrators' settings.
#include "daemon/core.h"
#include "daemon/registry/effective_words.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

const Actor kAdmin{7, 0, true};
const Actor kOwner{8, 1000, false};

NewClient Make(std::uint64_t pid, const std::string& group = {}) {
  NewClient fresh;
  fresh.identity.pid = pid;
  fresh.identity.uid = 1000;
  fresh.group_name = group;
  return fresh;
}

}  // namespace

TEST_CASE("an owner's priority and weight override hints, yield to rules and administrators, and respect the ceiling") {
  boost::asio::io_context io;
  Config config;
  config.ceilings[1000] = {.priority = 40, .weight = 400};
  Rule rule;
  rule.group = "ruled";
  rule.priority = 7;
  config.rules.push_back(rule);
  Core core(io, {}, config);
  Client& client = core.AddClient(Make(1));
  REQUIRE(core.SetHints(client, {.priority = 9, .weight = 250}));

  core.SetPriority({&client}, 20, kOwner);
  CHECK(client.effective.priority == 20);
  CHECK(client.effective.source == PrioritySource::kOwner);
  CHECK(client.effective.weight == 250);
  CHECK(HintNote(client, core.Settings()) == "priority hint 9 not used: its user set 20");
  CHECK(core.Events().Remembered().back().ReasonText() == "set to 20 by its user, uid 1000 (pid 8)");
  REQUIRE(core.SetHints(client, {.priority = 10}));
  CHECK(client.effective.priority == 20);

  core.SetWeight({&client}, 1'000, kOwner);
  CHECK(client.effective.weight == 400);
  CHECK(client.effective.weight_limited);
  core.SetWeight({&client}, 50, kAdmin);
  core.SetPriority({&client}, -1, kAdmin);
  core.SetPriority({&client}, 30, kOwner);
  CHECK(client.effective.priority == -1);
  CHECK(client.effective.weight == 50);
  core.SetWeight({&client}, std::nullopt, kAdmin);
  core.SetPriority({&client}, std::nullopt, kAdmin);
  CHECK(client.effective.priority == 30);
  CHECK(client.effective.weight == 400);
  core.SetPriority({&client}, std::nullopt, kOwner);
  core.SetWeight({&client}, std::nullopt, kOwner);
  CHECK(client.effective.priority == 10);
  CHECK(client.effective.weight == 250);

  Client& ruled = core.AddClient(Make(2, "ruled"));
  core.SetPriority({&ruled}, -50, kOwner);
  CHECK(ruled.effective.priority == 7);
  CHECK(ruled.effective.source == PrioritySource::kRule);
}

TEST_CASE("a client is held while its owner or an administrator holds it") {
  boost::asio::io_context io;
  Core core(io, {}, {});
  Client& client = core.AddClient(Make(1));
  core.SetHold({&client}, true, kOwner);
  CHECK(client.IsOnHold());
  CHECK(!client.hold);
  core.SetHold({&client}, true, kAdmin);
  CHECK(client.hold);
  core.SetHold({&client}, false, kOwner);
  CHECK(client.IsOnHold());
  core.SetHold({&client}, true, kOwner);
  core.SetHold({&client}, false, kAdmin);
  CHECK(!client.IsOnHold());
  const std::size_t events = core.Events().Remembered().size();
  core.SetHold({&client}, false, kOwner);
  CHECK(core.Events().Remembered().size() == events);
}
