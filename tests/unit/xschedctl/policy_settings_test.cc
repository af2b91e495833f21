// Settings at the command line: the text that is shown can be typed, with the same meaning.
#include "tools/xschedctl/policy_settings.h"

#include "tests/catch.h"

using namespace xschedd;
using namespace xschedd::ctl;
using policy::Settings;

TEST_CASE("the shown text of a setting can be typed") {
  const Settings defaults;
  for (const policy::SettingRow& row : policy::kSettings) {
    INFO(row.key);
    for (const policy::Value value : {policy::Value{row.min}, policy::Value{row.max}, policy::Get(row, defaults)}) {
      const auto back = ParseSetting(row, SettingText(row, value));
      REQUIRE(back);
      CHECK(*back == value);
    }
    CHECK(!ParseSetting(row, "much"));
    CHECK(!ParseSetting(row, "-1"));
    CHECK(ParseSetting(row, "vendor").has_value() == row.MayBeVendors());
    CHECK(ParseSetting(row, "auto").has_value() == (row.MayBeVendors() || (row.IsLever() && row.on == "auto")));
    CHECK(OptionOf(row).find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
  }
}

TEST_CASE("options, placeholders and values follow from the key") {
  const policy::SettingRow& guard = policy::RowOf(&Settings::guard_ms_per_s);
  const policy::SettingRow& slack = policy::RowOf(&Settings::share_slack_us);
  const policy::SettingRow& tolerance = policy::RowOf(&Settings::tolerance_percent);
  const policy::SettingRow& concurrent = policy::RowOf(&Settings::max_concurrent);
  const policy::SettingRow& slices = policy::RowOf(&Settings::time_slices);
  CHECK((OptionOf(guard) == "guard" && OptionOf(slack) == "share-slack" && OptionOf(concurrent) == "max-concurrent"));
  CHECK((Placeholder(guard) == "T" && Placeholder(tolerance) == "PERCENT"));
  CHECK((Placeholder(concurrent) == "N|auto" && Placeholder(slices) == "off|auto"));
  CHECK((SettingText(guard, 10) == "10ms" && SettingText(slack, 500) == "500us" && SettingText(slack, 5000) == "5ms"));
  CHECK((SettingText(guard, 0) == "0" && SettingText(tolerance, 5) == "5"));
  CHECK((SettingText(concurrent, policy::kByVendor) == "auto" && SettingText(slices, 1) == "auto"));
  CHECK(ParseSetting(concurrent, "many").error().what == "\"many\" is not a number, nor \"auto\"");
  CHECK(ParseSetting(slices, "on").error().Line() == "time_slices is neither \"auto\" nor \"off\"; give one of them");
  CHECK(HelpOf(slack).find("share: GPU time") == 0);
  // From a daemon that knows more words.
  CHECK(SettingText(slices, 7) == "7");
}

TEST_CASE("a setting that the daemon does not know is reported, and no other") {
  v1::SetPolicyRequest request;
  v1::Policy answer;
  CHECK(CheckTaken(request, answer));
  (*request.mutable_settings())["later_us"] = 0;
  CHECK(CheckTaken(request, answer).error().what.find("does not know later_us (the other") != std::string::npos);
  request.set_dry_run(true);
  CHECK(CheckTaken(request, answer).error().what.ends_with("does not know later_us"));
  (*answer.mutable_settings())["later_us"] = 0;
  CHECK(CheckTaken(request, answer));
}

TEST_CASE("a value is shown with its meaning in the help") {
  constexpr policy::SettingRow kRow{
      "a_us", &Settings::linger_us, 0, 9, policy::kOfAll, "9.0.0", "how long; 0: for ever; 7: a week; 70: no week"};
  CHECK(MeaningOf(kRow, 0) == "for ever");
  CHECK(MeaningOf(kRow, 7) == "a week");
  CHECK(MeaningOf(kRow, 70) == "no week");
  CHECK(MeaningOf(kRow, 8) == "how long");
  CHECK(MeaningOf(policy::RowOf(&Settings::time_slices), 0) == "the driver's own");
  CHECK(MeaningOf(policy::RowOf(&Settings::time_slices), 1).find("where a device gives") == 0);
  CHECK(MeaningOf(policy::RowOf(&Settings::max_concurrent), policy::kByVendor).find("no limit on AMD") == 0);
}
