#include "daemon/config/config.h"

#include "daemon/config/files.h"
#include "tests/catch.h"

using namespace xschedd;

namespace {

Result<Config> ParseOne(const std::string& text, const std::string& name) {
  return ParseConfig({{name, text}});
}

std::string ErrorOf(const std::string& text) {
  const auto config = ParseOne(text, "x.toml");
  return config ? "" : config.error().Line();
}

}  // namespace

TEST_CASE("an empty file gives the defaults") {
  const auto config = ParseOne("", "x.toml");
  REQUIRE(config);
  CHECK(config->lease_ms == 100);
  CHECK(config->policy == policy::Settings{});
  CHECK(!config->PriorityCeiling(1000));
  CHECK(!config->software_gpu);
  CHECK(config->readers == "xschedd-readers");
}

TEST_CASE("the shipped file equals the defaults") {
  const auto config = LoadConfig(XSCHEDD_SHIPPED_CONFIG, false);
  REQUIRE(config);
  const Config defaults;
  CHECK(config->lease_ms == defaults.lease_ms);
  CHECK(config->activity_interval_ms == defaults.activity_interval_ms);
  CHECK(config->spin == defaults.spin);
  CHECK(config->policy == defaults.policy);
  CHECK(config->quota.connections_per_uid == defaults.quota.connections_per_uid);
  CHECK(config->quota.queues_per_client == defaults.quota.queues_per_client);
  CHECK(config->metrics == defaults.metrics);
  CHECK(!config->metrics.enabled);
  CHECK(config->rules.empty());
}

TEST_CASE("everything can be set") {
  const auto config = ParseOne(R"(
passthrough = ["librccl.so", "hipMemcpy", "kernel:*<int, 4>*"]
[daemon]
lease_ms = 50
spin = true
[policy]
name = "fifo"
share_slack_us = 900
laxity_margin_us = 0
fair_quantum_ms = 60000
linger_us = 0
guard_ms_per_s = 0
window_us = 1000
max_concurrent = 3
turn_ms = 10
[device]
time_slices = "auto"
[quota]
connections_per_uid = 5
[[rule]]
exe = "vllm"
priority = 50
memory = "24G"
[[rule]]
uid = 1000
cgroup = "/user.slice"
priority = -100
[[rule]]
gid = 44
container = "0123456789ab"
weight = 10000
join = "cgroup"
[[rule]]
exe = "nccl-tests"
passthrough = ["kernel:*ncclDevKernel*"]
[[ceiling]]
uid = 1000
priority = 0
[[ceiling]]
uid = 1001
weight = 50
[[ceiling]]
priority = 20
weight = 200
)",
                               "x.toml");
  REQUIRE(config);
  CHECK(config->lease_ms == 50);
  CHECK(config->spin);
  CHECK(config->policy.name == policy::Name::kFifo);
  CHECK(config->policy.max_concurrent == 3u);
  CHECK(config->quota.connections_per_uid == 5);
  REQUIRE(config->passthrough.size() == 3);
  CHECK(config->passthrough[2] == "kernel:*<int, 4>*");
  CHECK(config->policy.share_slack_us == 900);
  CHECK(config->policy.laxity_margin_us == 0);
  CHECK(config->policy.fair_quantum_ms == 60'000);
  CHECK(config->policy.time_slices);
  REQUIRE(config->rules.size() == 4);
  CHECK(config->rules[3].passthrough == std::vector<std::string>{"kernel:*ncclDevKernel*"});
  CHECK(config->rules[0].memory_limit == std::uint64_t{24} << 30);
  CHECK(!config->rules[1].memory_limit);
  CHECK(config->rules[1].priority == -100);
  CHECK(!config->rules[1].weight);
  CHECK(config->rules[2].gid == 44u);
  CHECK(config->rules[2].container == "0123456789ab");
  CHECK(config->rules[2].weight == 10'000u);
  CHECK(config->rules[2].join == kJoinCgroup);
  CHECK(!config->rules[2].priority);
  CHECK(config->PriorityCeiling(1000) == 0);
  CHECK(config->PriorityCeiling(1001) == 20);
  CHECK(config->PriorityCeiling(0) == 20);
  CHECK(config->WeightCeiling(1000) == 200);
  CHECK(config->WeightCeiling(1001) == 50);
}

TEST_CASE("metrics: an address and classes") {
  const auto config = ParseOne(
      "[metrics]\nenabled = true\naddress = \"[::1]:80\"\n[[rule]]\nuid = 1\nclass = \"night_jobs-2\"\n", "x.toml");
  REQUIRE(config);
  CHECK((config->metrics.enabled && config->metrics.address == "[::1]:80"));
  CHECK(config->rules.at(0).metric_class == "night_jobs-2");
  CHECK(ErrorOf("[metrics]\naddress = \"localhost:80\"\n").find("x.toml:2:11: \"localhost:80\" is not an address") ==
        0);
  CHECK(ErrorOf("[metrics]\nport = 80\n").find("known are enabled, address") != std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\nclass = \"Night\"\n").find("give at most 32 of a-z") != std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\nclass = \"other\"\n").find("choose another name") != std::string::npos);
}

TEST_CASE("times with units, and users by name") {
  const auto config = ParseOne(
      "[daemon]\nlease_ms = \"1s\"\n[policy]\nlinger_us = \"1.5ms\"\nguard_ms_per_s = \"20ms\"\nmax_concurrent = "
      "\"auto\"\n[[rule]]\nuser = \"root\"\nweight = 7\n[[ceiling]]\nuser = \"root\"\npriority = 5\n",
      "x.toml");
  REQUIRE(config);
  CHECK((config->lease_ms == 1000 && config->policy.linger_us == 1500 && config->policy.guard_ms_per_s == 20));
  CHECK(!config->policy.max_concurrent);
  CHECK(config->rules.at(0).uid == 0u);
  CHECK(config->PriorityCeiling(0) == 5);
}

TEST_CASE("time slices are auto or off") {
  CHECK(ParseOne("", "x.toml")->policy.time_slices);
  CHECK(!ParseOne("[device]\ntime_slices = \"off\"\n", "x.toml")->policy.time_slices);
  CHECK(ErrorOf("[device]\ntime_slices = \"on\"\n") ==
        "x.toml:2:15: time_slices is \"on\"; choose \"auto\" or \"off\"");
  CHECK(ErrorOf("[device]\ntime_slices = true\n").find("x.toml:2:15: ") == 0);
  CHECK(ErrorOf("[device]\nslices = \"off\"\n").find("known are time_slices") != std::string::npos);
}

TEST_CASE("an error has a place, cause and remedy") {
  CHECK(ErrorOf("[policy]\nlinger = 1\n") ==
        "x.toml:2:1: unknown key \"linger\" in [policy]; known are name, linger_us, guard_ms_per_s, window_us, "
        "top_window_us, max_concurrent, turn_ms, tolerance_percent, step_aside, share_slack_us, laxity_margin_us, "
        "fair_quantum_ms");
  CHECK(ErrorOf("[policy]\nlinger_us = 1.5\n") ==
        "x.toml:2:13: \"linger_us\" is not a whole number; give a number from 0 to 100000");
  CHECK(ErrorOf("[policy]\nlinger_us = \"1\"\n") ==
        "x.toml:2:13: \"linger_us\": \"1\" is not a duration; give a number with us, ms, s, min or h, as in 25ms");
  CHECK(ErrorOf("[policy]\nturn_ms = \"500us\"\n") ==
        "x.toml:2:11: \"turn_ms\": \"500us\" is not a whole number of milliseconds; round it");
  CHECK(ErrorOf("[policy]\nlinger_us = \"1s\"\n") ==
        "x.toml:2:13: \"linger_us\" = 1000000 is out of range; give a number from 0 to 100000");
  CHECK(ErrorOf("[policy]\ntolerance_percent = \"1s\"\n").find("is not a whole number") != std::string::npos);
  CHECK(ErrorOf("[daemon]\nspin = 1\n") ==
        "x.toml:2:8: \"spin\" is neither true nor false; write one of these, without quotes");
  CHECK(ErrorOf("[policy]\nlinger_us = -1\n") ==
        "x.toml:2:13: \"linger_us\" = -1 is out of range; give a number from 0 to 100000");
  CHECK(ErrorOf("[policy]\nname = \"best\"\n") ==
        "x.toml:2:8: there is no policy \"best\"; choose " + policy::NamesText());
  CHECK(ErrorOf("[[rule]]\nuid = 1\npriority = 101\n") ==
        "x.toml:3:12: \"priority\" = 101 is out of range; give a number from -100 to 100");
  CHECK(ErrorOf("[[rule]]\npriority = 1\n").find("matches every client; give it a uid") != std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\n")
            .find("sets nothing; give it a priority, weight, latency, memory, join, passthrough or class") !=
        std::string::npos);
  CHECK(
      ErrorOf("[[rule]]\ncontainer = \"my-container\"\nweight = 1\n") ==
      "x.toml:2:13: \"my-container\" is no container's id; give 12 to 64 hexadecimal digits, as docker ps shows them");
  CHECK(ErrorOf("[[rule]]\nuid = 1\nlatency = \"low\"\n").find("\"low\" is no latency; give \"strict\" or \"auto\"") !=
        std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\nmemory = \"24\"\n") ==
        "x.toml:3:10: a limit of 24 bytes of device memory is out of range; give 1M to 1024T, such as 24G");
  CHECK(ErrorOf("[[rule]]\nuid = 1\nmemory = \"24GB\"\n").find("\"24GB\" is not a size of memory; give bytes") !=
        std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\nmemory = 24\n").find("not a text") != std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuid = 1\nweight = 0\n").find("give a number from 1 to 10000") != std::string::npos);
  CHECK(ErrorOf("[[ceiling]]\nuid = 1\n").find("limits nothing; give it a priority or weight") != std::string::npos);
  CHECK(ErrorOf("[rule]\nuid = 1\n").find("write [[rule]]") != std::string::npos);
  CHECK(ErrorOf("[[ceiling]]\nuid=1\npriority=1\n[[ceiling]]\nuid=1\npriority=2\n").find("second [[ceiling]]") !=
        std::string::npos);
  CHECK(
      ErrorOf("[[ceiling]]\nuid=0\npriority=1\n[[ceiling]]\nuser=\"root\"\npriority=2\n").find("second [[ceiling]]") !=
      std::string::npos);
  CHECK(ErrorOf("[[rule]]\nuser = \"no-such-user\"\nweight = 1\n") ==
        "x.toml:2:8: there is no user \"no-such-user\"; give a user name or a uid");
  CHECK(ErrorOf("[[rule]]\nuid = 0\nuser = \"root\"\nweight = 1\n").find("x.toml:3:8: a uid and a user") == 0);
  CHECK(ErrorOf("passthrough = [1]\n").find("not a text") != std::string::npos);
  CHECK(ErrorOf("passthrough = [\"librccl.so\",\n  \"hipMemcpyAsnc\"]\n") ==
        "x.toml:2:3: passthrough: \"hipMemcpyAsnc\" is no entry point that is gated; did you mean hipMemcpyAsync?");
  CHECK(ErrorOf("[[rule]]\nuid = 1\npassthrough = [\"librccl\"]\n") ==
        "x.toml:3:16: passthrough: \"librccl\" is no entry point that is gated, and no library's file name; write "
        "librccl.so");
  CHECK(ErrorOf("policy = 1\n").find("is not a table") != std::string::npos);
  CHECK(ErrorOf("[daemon]\nlease_ms = 1\n").find("from 20 to 10000") != std::string::npos);
  CHECK(ErrorOf("[policy\n").find("x.toml:1:") == 0);
  CHECK(ErrorOf("name = \"\xff\"\n").find("x.toml:1:") == 0);
}

TEST_CASE("quotes from the file stay on one line without control characters") {
  const auto config = ParseOne("\"a\\nb\\u001bc\\u009b\" = 1\n", "file");
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().what.find("\"a?b?c?\"") != std::string::npos);
}
