// The daemon's records as messages, rare cases included.
#include "daemon/admin/conversion.h"

#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("causes beyond the limit are summed up as others") {
  Explanation explanation;
  explanation.causes.push_back({"0000:c1:00.0", {}, "busy"});
  explanation.causes.back().total.reason = {policy::Why::kTurn, 7, -3};
  explanation.causes.back().total.count = 2;
  explanation.causes.push_back({"0000:c1:00.0", {}, "the rest"});
  explanation.causes.back().total.is_others = true;
  v1::ExplainResponse message;
  FillExplanation(explanation, message);
  REQUIRE(message.causes_size() == 2);
  CHECK(message.causes(0).rule() == "turn");
  CHECK(message.causes(0).for_pid() == 7);
  CHECK(message.causes(0).count() == 2);
  CHECK(message.causes(1).rule() == "others");
  CHECK(message.causes(1).reason() == "the rest");
  CHECK(!message.is_gone());
}

TEST_CASE("the source of a priority is shown, and a client without memory has no counters") {
  EventLog events;
  Registry registry;
  Scheduler scheduler(registry, events, [] { return std::uint64_t{0}; });
  NewClient fresh;
  fresh.identity.pid = 5;
  Client& client = registry.Add(std::move(fresh), 0);
  REQUIRE(registry.Attach(client, {0, "0000:c1:00.0", "GPU", "amd", 4, {}}));
  const struct {
    PrioritySource from;
    v1::PrioritySource to;
  } cases[] = {{PrioritySource::kDefault, v1::PRIORITY_SOURCE_UNSPECIFIED},
               {PrioritySource::kAdmin, v1::PRIORITY_SOURCE_ADMIN},
               {PrioritySource::kRule, v1::PRIORITY_SOURCE_RULE},
               {PrioritySource::kHint, v1::PRIORITY_SOURCE_HINT},
               {PrioritySource::kOwner, v1::PRIORITY_SOURCE_OWNER},
               {PrioritySource::kGroup, v1::PRIORITY_SOURCE_GROUP},
               {PrioritySource::kClaim, v1::PRIORITY_SOURCE_CLAIM},
               {static_cast<PrioritySource>(99), v1::PRIORITY_SOURCE_UNSPECIFIED}};
  for (const auto& [from, to] : cases) {
    client.effective.source = from;
    v1::Client message;
    FillClient(client, scheduler, 0, message);
    CHECK(message.priority_source() == to);
    CHECK(message.devices(0).submitted() == 0);
  }
}

TEST_CASE("an unknown policy name is rejected") {
  CHECK(!policy::NameFrom("best"));
  policy::Settings settings;
  v1::Policy message;
  FillPolicy(settings, message);
  CHECK(message.max_concurrent_by_vendor());
  CHECK(message.time_slices() == "auto");
  settings.time_slices = false;
  settings.max_concurrent = 3;
  message.Clear();
  FillPolicy(settings, message);
  CHECK(message.max_concurrent() == 3);
  CHECK(message.time_slices() == "off");
  CHECK(!message.max_concurrent_by_vendor());
}
