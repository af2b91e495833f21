// The configuration as `xschedctl config` shows it.
#include "daemon/config/config.h"

#include "daemon/config/key_units.h"
#include "tests/catch.h"
#include "tools/xschedctl/render_config.h"

namespace xschedd::ctl {
namespace {

ShownConfig Shown(const Config& config) {
  return ctl::Shown(config, "x.toml");
}

const std::vector<ConfigFile> kOneFile = {{"x.toml", ""}};

Examined Examine(const std::string& text) {
  return ExamineConfig({{"x.toml", text}});
}

const Json& Of(const Json& shown, const std::string& key) {
  for (const Json& one : shown["settings"]) {
    if (one["key"] == key) return one;
  }
  static const Json none;
  return none;
}

}  // namespace

TEST_CASE("a setting of a file is shown with its line, unit and default") {
  const auto config =
      ParseConfig({{"x.toml", "[policy]\nturn_ms = 40\nlinger_us = 200\n[[rule]]\nexe = \"a\\\"b\"\nweight = 7\n"}});
  REQUIRE(config);
  const Json shown = ToJson(Shown(*config), false);
  const Json& turn = Of(shown, "policy.turn_ms");
  CHECK(turn["value"] == 40);
  CHECK(turn["default"] == 100);
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
  CHECK(text.find("x.toml, line 2") != std::string::npos);
  CHECK(text.find("2 of ") != std::string::npos);
}

TEST_CASE("a daemon's settings by an administrator and by its option") {
  Config config;
  config.places = {{"policy.name", {"x.toml", 3}}, {"policy.turn_ms", {"x.toml", 4}}};
  const policy::Settings file = config.policy;
  config.policy.turn_ms = 30;
  const std::vector<Setting> settings = DescribeLive(config, file, true);
  for (const Setting& setting : settings) {
    CAPTURE(setting.key);
    if (setting.key == "policy.turn_ms") {
      CHECK(setting.source == kFromAdmin);
      CHECK(!setting.place.IsSet());
    } else {
      CHECK(setting.source == (setting.key == "policy.name" ? kFromOption : kFromDefault));
    }
  }
}

TEST_CASE("all errors in a file are shown, in order") {
  const Examined examined =
      Examine("[policy]\nturn_ms = 0\nlingr_us = 1\n[[rule]]\nuid = \"me\"\npassthrough = [\"x\", \"y\"]\n");
  CHECK(!examined.config);
  REQUIRE(examined.errors.size() == 5);
  CHECK(examined.errors[0].line == 2);
  CHECK(examined.errors[1].line == 3);
  CHECK(examined.errors[2].line == 5);
  CHECK(examined.errors[3].line == 6);
  CHECK(examined.errors[4].line == 6);
  const std::string text = RenderErrors(kOneFile, examined, {});
  CHECK(text.find("x.toml:2:11: error: \"turn_ms\" = 0 is out of range; give a number from 1 to 1000\n") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 150; ++i)
    many += "a" + std::to_string(i) + " = 1\n";
  CHECK(Examine(many).errors.size() == 100);
  CHECK(Examine(many).more_errors == 50);
  CHECK(Examine("").config);
}

TEST_CASE("with several files, each value and each error names its file") {
  const std::vector<ConfigFile> files = {
      {"/etc/x/x.toml", "[policy]\nturn_ms = 40\nlinger_us = 300\n[[ceiling]]\nuid = 7\nweight = 3\n"},
      {"/etc/x/conf.d/1.toml", "\n[policy]\nturn_ms = 60\n[[ceiling]]\nuid = 3\nweight = 2\n"}};
  const auto config = ParseConfig(files);
  REQUIRE(config);
  const ShownConfig shown = ctl::Shown(*config, "/etc/x/x.toml");
  const Json json = ToJson(shown, false);
  CHECK(json["drop_ins"] == Json({"/etc/x/conf.d/1.toml"}));
  CHECK((Of(json, "policy.turn_ms")["file"] == "/etc/x/conf.d/1.toml" && Of(json, "policy.turn_ms")["line"] == 3));
  CHECK((Of(json, "policy.linger_us")["file"] == "/etc/x/x.toml" && Of(json, "policy.linger_us")["line"] == 3));
  CHECK(Of(json, "policy.name")["file"].is_null());
  CHECK(Of(json, "ceiling.0")["value"]["uid"] == 7);
  CHECK(Of(json, "ceiling.1")["value"]["uid"] == 3);
  const std::string text = RenderConfig(shown, true, {});
  CHECK(text.find("conf.d/1.toml, line 3\n") != std::string::npos);
  CHECK(text.find("  x.toml, line 3\n") != std::string::npos);
  CHECK(text.find("read from /etc/x/x.toml and 1 file in conf.d)") != std::string::npos);
  CHECK(RenderErrors(files, ExamineConfig(files), {}) == "/etc/x/x.toml: good\n/etc/x/conf.d/1.toml: good\n");
  const std::vector<ConfigFile> wrong = {{"b.toml", "x = 1\ny = 2\n"}, {"a.toml", "[x"}, {"c.toml", "z = 3\n"}};
  const Examined examined = ExamineConfig(wrong);
  REQUIRE(examined.errors.size() == 4);
  CHECK((examined.errors[1].file == "b.toml" && examined.errors[1].line == 2));
  CHECK((examined.errors[2].file == "a.toml" && examined.errors[3].file == "c.toml"));
  CHECK(RenderErrors(wrong, examined, {}).find("c.toml:1:1: error: unknown key") != std::string::npos);
}

TEST_CASE("the end of a key gives its unit") {
  CHECK(UnitOf("policy.window_us") == "us");
  CHECK(UnitOf("policy.guard_ms_per_s") == "ms/s");
  CHECK(UnitOf("policy.tolerance_percent") == "%");
  CHECK(UnitOf("quota.memory_kib_per_uid") == "KiB");
  CHECK(UnitOf("quota.message_kib_per_s") == "KiB/s");
  CHECK(UnitOf("quota.clients_per_uid").empty());
}

TEST_CASE("colour is used only where it is wanted") {
  const Examined good = Examine("");
  CHECK(RenderErrors(kOneFile, good, {}).find('\x1b') == std::string::npos);
  CHECK(RenderErrors(kOneFile, good, {.colour = true}).find("\x1b[32m") != std::string::npos);
}

}  // namespace xschedd::ctl
