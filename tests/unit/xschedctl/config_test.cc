// The configuration as `xschedctl config` shows it.
#include "daemon/config/config.h"

#include "daemon/config/key_units.h"
#include "tests/catch.h"
#include "tools/xschedctl/render_config.h"

namespace xschedd::ctl {
namespace {

ShownConfig Shown(const Config& config) {
  return ctl::Shown(Describe(config), "x.toml");
}

const Json& Of(const Json& shown, const std::string& key) {
  for (const Json& one : shown["settings"]) {
    if (one["key"] == key) return one;
  }
  static const Json none;
  return none;
}

}  // namespace

TEST_CASE("what a file sets is shown with its line, its unit and its default") {
  const auto config =
      ParseConfig("[policy]\nturn_ms = 40\nlinger_us = 200\n[[rule]]\nexe = \"a\\\"b\"\nweight = 7\n", "x.toml");
  REQUIRE(config);
  const Json shown = ToJson(Shown(*config), false);
  const Json& turn = Of(shown, "policy.turn_ms");
  CHECK(turn["value"] == 40);
  CHECK(turn["default"] == 50);
  CHECK(turn["unit"] == "ms");
  CHECK(turn["differs"] == true);
  CHECK(turn["source"] == "file");
  CHECK(turn["line"] == 2);
  CHECK(Of(shown, "policy.linger_us")["differs"] == false);
  CHECK(Of(shown, "policy.linger_us")["source"] == "file");
  CHECK(Of(shown, "daemon.lease_ms")["source"] == "default");
  CHECK(Of(shown, "daemon.lease_ms")["line"].is_null());
  CHECK(Of(shown, "policy.max_concurrent")["value"] == "auto");
  CHECK(Of(shown, "rule.0")["value"] == Json({{"exe", "a\"b"}, {"weight", 7}}));
  CHECK(Of(shown, "rule.0")["line"] == 4);
  CHECK(ToJson(Shown(*config), true)["settings"].size() == 2);
  const std::string text = RenderConfig(Shown(*config), true, {});
  CHECK(text.find("policy.turn_ms  40 ms") != std::string::npos);
  CHECK(text.find("file, line 2") != std::string::npos);
  CHECK(text.find("2 of ") != std::string::npos);
}

TEST_CASE("of a daemon: what an administrator set, and what its option set") {
  Config config;
  config.lines = {{"policy.name", 3}, {"policy.turn_ms", 4}};
  const policy::Settings file = config.policy;
  config.policy.turn_ms = 30;
  const std::vector<Setting> settings = DescribeLive(config, file, true);
  for (const Setting& setting : settings) {
    CAPTURE(setting.key);
    if (setting.key == "policy.turn_ms") {
      CHECK(setting.source == kFromAdmin);
      CHECK(setting.line == 0);
    } else {
      CHECK(setting.source == (setting.key == "policy.name" ? kFromOption : kFromDefault));
    }
  }
}

TEST_CASE("all that is wrong with a file is told, in its order") {
  const Examined examined = ExamineConfig(
      "[policy]\nturn_ms = 0\nlingr_us = 1\n[[rule]]\nuid = \"me\"\npassthrough = [\"x\", \"y\"]\n", "x.toml");
  CHECK(!examined.config);
  REQUIRE(examined.errors.size() == 5);
  CHECK(examined.errors[0].line == 2);
  CHECK(examined.errors[1].line == 3);
  CHECK(examined.errors[2].line == 5);
  CHECK(examined.errors[3].line == 6);
  CHECK(examined.errors[4].line == 6);
  const std::string text = RenderErrors("x.toml", examined, {});
  CHECK(text.find("x.toml:2:11: error: \"turn_ms\" = 0 is out of range; give a number from 1 to 1000\n") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 150; ++i)
    many += "a" + std::to_string(i) + " = 1\n";
  CHECK(ExamineConfig(many, "x").errors.size() == 100);
  CHECK(ExamineConfig(many, "x").more_errors == 50);
  CHECK(ExamineConfig("", "x").config);
}

TEST_CASE("each unit is told by the key's end") {
  CHECK(UnitOf("policy.window_us") == "us");
  CHECK(UnitOf("policy.guard_ms_per_s") == "ms/s");
  CHECK(UnitOf("policy.tolerance_percent") == "%");
  CHECK(UnitOf("quota.memory_kib_per_uid") == "KiB");
  CHECK(UnitOf("quota.message_kib_per_s") == "KiB/s");
  CHECK(UnitOf("quota.clients_per_uid").empty());
}

TEST_CASE("colour is only there where it is wanted") {
  const Examined good = ExamineConfig("", "x");
  CHECK(RenderErrors("x", good, {}).find('\x1b') == std::string::npos);
  CHECK(RenderErrors("x", good, {.colour = true}).find("\x1b[32m") != std::string::npos);
}

}  // namespace xschedd::ctl
