// How `policy set --persist` changes its file.
#include "tools/xschedctl/policy_file.h"

#include "daemon/config/config.h"
#include "daemon/config/settings_message.h"
#include "tests/catch.h"

namespace xschedd::ctl {
namespace {

v1::SetPolicyRequest Setting(const policy::SettingRow& row, policy::Value value) {
  v1::SetPolicyRequest request;
  PutSetting(row, value, request);
  return request;
}

std::string Add(const std::string& before, const v1::SetPolicyRequest& request) {
  const auto text = PolicyFileText(before, request, "50-policy.toml");
  return text ? *text : text.error().Line();
}

}  // namespace

TEST_CASE("the persisted policy keeps what was persisted before") {
  v1::SetPolicyRequest name;
  name.set_name("share");
  std::string text = Add("", name);
  CHECK(text.ends_with("\n[policy]\nname = \"share\"\n"));
  text = Add(text, Setting(policy::RowOf(&policy::Settings::turn_ms), 40));
  text = Add(text, Setting(policy::RowOf(&policy::Settings::time_slices), 0));
  text = Add(text, Setting(policy::RowOf(&policy::Settings::turn_ms), 30));
  text = Add(text, Setting(policy::RowOf(&policy::Settings::max_concurrent), policy::kByVendor));
  CHECK(
      text.ends_with("\n[policy]\nmax_concurrent = \"auto\"\nname = \"share\"\nturn_ms = 30\n\n[device]\ntime_slices = "
                     "\"off\"\n"));
  CHECK(ParseConfig({{"x", text}}));
  CHECK(Add(text, {}) == text);
}

TEST_CASE("every persisted setting reads back unchanged") {
  for (const policy::SettingRow& row : policy::kSettings) {
    CAPTURE(row.key);
    for (const policy::Value value : {policy::Value{row.min}, policy::Value{row.max}}) {
      const auto config = ParseConfig({{"x", Add("", Setting(row, value))}});
      REQUIRE(config);
      CHECK(policy::Get(row, config->policy) == value);
    }
  }
}

TEST_CASE("other content of the file is not lost, and nothing is added to a wrong file") {
  CHECK(Add("[policy]\nturn_ms = 5\n[[rule]]\nuid = 1\nweight = 2\n", {}) ==
        "50-policy.toml contains more than the policy, which would be lost; rename it: xschedctl keeps the policy in "
        "50-policy.toml");
  CHECK(Add("passthrough = []\n", {}).find("contains more than the policy") != std::string::npos);
  CHECK(Add("[policy]\nturn_ms = 0\n", {}).find("50-policy.toml:2:11: ") == 0);
}

}  // namespace xschedd::ctl
