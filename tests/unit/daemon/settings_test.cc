// The table of settings and the registry of policies: each row is sound, and each way of writing a value reads back as
// it.
#include "daemon/policy/settings.h"

#include <set>
#include <string>

#include "admin.pb.h"
#include "daemon/config/settings_message.h"
#include "daemon/policy/decide.h"
#include "state.pb.h"
#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::policy;

namespace {

// A setting of a later release, without a field in any message.
constexpr SettingRow kLater{"later_us", &Settings::linger_us, 7, 50, kOfAll, "9.0.0", "what no release knows yet"};

Settings AllAt(std::uint32_t SettingRow::*end) {
  Settings settings;
  for (const SettingRow& row : kSettings)
    REQUIRE(Set(row, row.*end, settings));
  return settings;
}

template <typename Message>
void CheckRoundTrip(const Settings& settings) {
  Message message;
  PutSettings(settings, message);
  // The first release reads only fields.
  for (const SettingRow& row : kSettings)
    CHECK(message.settings().contains(std::string(row.key)) == (row.since != "0.1.0"));
  Settings back;
  for (const SettingRow& row : kSettings) {
    const auto found = FindSetting(row, message);
    REQUIRE(found);
    if (*found) CHECK(Set(row, **found, back));
  }
  CHECK(back == settings);
}

}  // namespace

TEST_CASE("each setting changes only itself, within its limits, by its own key") {
  std::set<std::string_view> keys;
  for (const SettingRow& row : kSettings) {
    INFO(row.key);
    CHECK(keys.insert(row.key).second);
    CHECK(RowFrom(row.key) == &row);
    CHECK(!row.help.empty());
    CHECK(!row.since.empty());
    CHECK((row.owner == kOfAll || row.owner == kOfDevice || row.owner == kOfAmd || NameFrom(row.owner)));
    Settings settings;
    CHECK(Set(row, Get(row, settings), settings));
    CHECK(settings == Settings{});
    for (const Value value : {Value{row.min}, Value{row.max}}) {
      REQUIRE(Set(row, value, settings));
      CHECK(Get(row, settings) == value);
    }
    for (const SettingRow& other : kSettings)
      CHECK((&other == &row || Get(other, settings) == Get(other, Settings{})));
    const Settings before = settings;
    for (const Value value : {Value{row.max} + 1, Value{-2}, Value{row.min} + (Value{1} << 32)}) {
      const auto refused = Set(row, value, settings);
      REQUIRE(!refused);
      CHECK(refused.error().what.find(row.key) == 0);
      CHECK(settings == before);
    }
    CHECK(Set(row, kByVendor, settings).has_value() == row.MayBeVendors());
  }
  CHECK(RowFrom("no_such_setting") == nullptr);
}

TEST_CASE("a refusal says which values are allowed") {
  Settings settings;
  CHECK(Set(RowOf(&Settings::turn_ms), 0, settings).error().Line() ==
        "turn_ms 0 is out of range; give a number from 1 to 1000");
  const SettingRow& slices = RowOf(&Settings::time_slices);
  CHECK(Set(slices, ValueOfWord(slices, "on"), settings).error().Line() ==
        "time_slices is neither \"auto\" nor \"off\"; give one of them");
  CHECK(Text(slices, ValueOfWord(slices, "auto")) == "auto");
  const SettingRow& priority = RowOf(&Settings::queue_priority);
  CHECK(Set(priority, ValueOfWord(priority, "auto"), settings).error().Line() ==
        "queue_priority is neither \"on\" nor \"off\"; give one of them");
  CHECK(Text(priority, ValueOfWord(priority, "on")) == "on");
  CHECK(Text(RowOf(&Settings::max_concurrent), kByVendor) == "auto");
}

TEST_CASE("settings survive a round trip through a message") {
  for (const Settings& settings : {Settings{}, AllAt(&SettingRow::min), AllAt(&SettingRow::max)}) {
    CheckRoundTrip<v1::Policy>(settings);
    CheckRoundTrip<v1::SetPolicyRequest>(settings);
    CheckRoundTrip<state::Policy>(settings);
  }
}

TEST_CASE("a setting without a field travels by key; absent is unset, and twice is an error") {
  v1::SetPolicyRequest request;
  CHECK(!*FindSetting(kLater, request));
  PutSetting(kLater, 9, request);
  CHECK(request.settings().at("later_us") == 9);
  CHECK(*FindSetting(kLater, request) == 9);

  const SettingRow& turn = RowOf(&Settings::turn_ms);
  CHECK(!*FindSetting(turn, request));
  (*request.mutable_settings())["turn_ms"] = 6;
  CHECK(*FindSetting(turn, request) == 6);
  request.set_turn_ms(0);
  CHECK(FindSetting(turn, request).error().Line() == "turn_ms is given twice; give it once");

  // A field of an answer is always present.
  CHECK(*FindSetting(turn, v1::Policy()) == 0);
}

TEST_CASE("the policies' constants are their indices in the registry") {
  for (const auto& [name, text] : {std::pair(Name::kPriority, "priority"), std::pair(Name::kShare, "share"),
                                   std::pair(Name::kDeadline, "deadline"), std::pair(Name::kLaxity, "laxity"),
                                   std::pair(Name::kFair, "fair"), std::pair(Name::kFifo, "fifo")})
    CHECK(Text(name) == text);
}
