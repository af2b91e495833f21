// The scheduler of an observing daemon: everything is decided and recorded, nothing is in force.
#include "daemon/scheduler/explain.h"
#include "daemon/scheduler/scheduler.h"
#include "tests/catch.h"
#include "tests/unit/daemon/world.h"

using namespace xschedd;
using namespace xschedd::test;

namespace {

Explanation Explain(const World& world, const Peer& peer) {
  Config config;
  config.enforce = world.scheduler.Enforces();
  return ExplainClient(*peer.client, 0, {world.registry, world.scheduler.Records().Histories(), config, fake_now});
}

// The board only asks the client in this slot to report.
bool IsFree(const Peer& peer) {
  const auto& gate = static_cast<const abi::Board*>(peer.board_mapping.Address())->gates[0];
  return !peer.Held(0) && peer.Tracked(0) && gate.window_us == 0 && gate.slice_us == 0;
}

}  // namespace

TEST_CASE("an observing daemon decides and counts, but holds no client") {
  World world;
  world.scheduler.SetEnforcing(false);
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*low, true);
  world.Report(*high, true);
  CHECK(IsFree(*low));
  CHECK(IsFree(*high));
  const Attachment& attachment = *low->client->attachments.at(0);
  CHECK(attachment.gate.held);
  CHECK(attachment.reason.Text() == "observed only: pid 1 (priority 50) is busy");
  fake_now += 3 * policy::kNsPerMs;
  world.Report(*high, false);
  CHECK(attachment.HeldNsAt(fake_now) == 3 * policy::kNsPerMs);
  const Explanation explanation = Explain(world, *low);
  REQUIRE(explanation.causes.size() == 1);
  CHECK(explanation.causes[0].text == "observed only: priority: pid 1 (priority 50) was busy here");
  CHECK(explanation.summary.find("it would have been held for") != std::string::npos);
}

TEST_CASE("an observing daemon measures nothing that needs a gate") {
  for (const bool enforces : {true, false}) {
    World world;
    policy::Settings settings;
    settings.tolerance_percent = 20;
    world.scheduler.SetSettings(settings);
    world.scheduler.SetEnforcing(enforces);
    CHECK(world.scheduler.Settings().tolerance_percent == 20);
    const auto high = world.Connect(1, 50);
    const auto low = world.Connect(2, 0);
    world.Report(*low, true);
    world.Report(*high, true);
    fake_now += 20 * policy::kNsPerMs;
    world.Report(*high, false);
    CHECK((high->client->group->memory.benefit->seen_ns != 0) == enforces);
  }
}

TEST_CASE("enforcement switches on and off under running clients, and both kinds of holds are counted separately") {
  World world;
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  world.Report(*low, true);
  world.Report(*high, true);
  REQUIRE(low->Held(0));
  fake_now += 2 * policy::kNsPerMs;
  world.scheduler.SetEnforcing(false);
  CHECK(IsFree(*low));
  fake_now += 3 * policy::kNsPerMs;
  world.scheduler.SetEnforcing(true);
  CHECK(low->Held(0));
  fake_now += 4 * policy::kNsPerMs;
  world.scheduler.Decide();
  const Explanation explanation = Explain(world, *low);
  REQUIRE(explanation.causes.size() == 2);
  for (const ExplainedCause& cause : explanation.causes) {
    CHECK(cause.total.total_ns == (cause.total.reason.is_observed ? 3 : 6) * policy::kNsPerMs);
    CHECK(cause.total.count == (cause.total.reason.is_observed ? 1 : 2));
  }
  CHECK(low->client->attachments.at(0)->HeldNsAt(fake_now) == 9 * policy::kNsPerMs);
}

TEST_CASE("an administrator's hold is not in force either") {
  World world;
  world.scheduler.SetEnforcing(false);
  const auto high = world.Connect(1, 50);
  const auto low = world.Connect(2, 0);
  low->client->hold = true;
  world.scheduler.Changed(*low->client);
  world.Report(*low, true);
  CHECK(IsFree(*low));
  CHECK(low->client->attachments.at(0)->reason.Text() == "observed only: on hold until xschedctl release");
}
