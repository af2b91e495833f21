// From a pod's annotations to a claim.
#include "tools/nri/translate.h"

#include "tests/catch.h"

using namespace xschedd::nri;

namespace {

constexpr char kId[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kWho = "pod ml/web-1, container main";

Settings TestSettings() {
  const auto settings = ParseSettings(
      "[default]\nceiling = 0\n[namespace.ml]\nceiling = 50\nweight_ceiling = 200\n[namespace.batch]\nceiling = -10\n"
      "priority = -30\nmemory = \"24G\"\n",
      "nri.toml");
  REQUIRE(settings);
  return *settings;
}

api::Container MakeContainer() {
  api::Container container;
  container.set_id(kId);
  container.set_name("main");
  return container;
}

using Annotations = std::map<std::string, std::string>;
Plan PlanOf(const Annotations& annotations, const std::string& space = "ml",
            const api::Container& container = MakeContainer()) {
  api::PodSandbox pod;
  pod.set_name("web-1");
  pod.set_namespace_(space);
  for (const auto& [key, value] : annotations)
    (*pod.mutable_annotations())[key] = value;
  return Translate(pod, container, TestSettings());
}

// The part of the claim that annotations decide: "priority weight latency group".
std::string Asked(const xschedd::v1::Claim& claim) {
  return (claim.has_priority() ? std::to_string(claim.priority()) : "-") + " " +
         (claim.has_weight() ? std::to_string(claim.weight()) : "-") + " " +
         (claim.latency().empty() ? "-" : claim.latency()) + " " + (claim.group().empty() ? "-" : claim.group());
}

}  // namespace

TEST_CASE("annotations become a claim within the limits of the namespace") {
  struct Row {
    Annotations annotations;
    std::string space;
    std::string asked;
    std::vector<std::string> lines;
  };
  const Row rows[] = {
      {{{"xschedd.io/priority", "20"}}, "ml", "20 - - -", {}},
      {{{"xschedd.io/priority", "-20"}}, "ml", "-20 - - -", {}},
      {{{"xschedd.io/priority", "50"}}, "ml", "50 - - -", {}},
      {{{"xschedd.io/priority", "51"}},
       "ml",
       "50 - - -",
       {kWho + ": priority 51 is above 50, the ceiling of namespace ml; it gets 50"}},
      // Without configuration for its namespace, a pod cannot raise itself.
      {{{"xschedd.io/priority", "1"}},
       "other",
       "0 - - -",
       {"pod other/web-1, container main: priority 1 is above 0, the ceiling of namespace other; it gets 0"}},
      {{{"xschedd.io/priority", "high"}},
       "ml",
       "- - - -",
       {kWho + ": xschedd.io/priority: \"high\" is not a priority; give a number from -100 to 100; it is ignored"}},
      {{{"xschedd.io/priority", "200"}},
       "ml",
       "- - - -",
       {kWho + ": xschedd.io/priority: priority 200 is out of range; give a number from -100 to 100; it is ignored"}},
      {{{"xschedd.io/priority", "a\n\"b"}},
       "ml",
       "- - - -",
       {kWho + ": xschedd.io/priority: \"a??b\" is not a priority; give a number from -100 to 100; it is ignored"}},
      // A wrong value is ignored: the namespace's default counts.
      {{{"xschedd.io/priority", "no"}},
       "batch",
       "-30 - - -",
       {"pod batch/web-1, container main: xschedd.io/priority: \"no\" is not a priority; give a number from -100 to "
        "100; "
        "it is ignored"}},
      {{{"xschedd.io/weight", "150"}},
       "batch",
       "-30 100 - -",
       {"pod batch/web-1, container main: weight 150 is above 100, the ceiling of namespace batch; it gets 100"}},
      {{{"xschedd.io/weight", "150"}, {"xschedd.io/latency", "strict"}, {"xschedd.io/group", "ranks"}},
       "ml",
       "- 150 strict ml/ranks",
       {}},
      {{{"xschedd.io/weight", "0"}},
       "ml",
       "- - - -",
       {kWho + ": xschedd.io/weight: \"0\" is not a weight; give a number from 1 to 10000; it is ignored"}},
      {{{"xschedd.io/latency", "fast"}},
       "ml",
       "- - - -",
       {kWho + ": xschedd.io/latency: \"fast\" is no latency; give \"strict\" or \"auto\"; it is ignored"}},
      {{{"xschedd.io/group", "a\tb"}},
       "ml",
       "- - - -",
       {kWho +
        ": xschedd.io/group: \"a?b\" cannot be the name of a group; give printable text, with the namespace's name "
        "at most 256 bytes; it is ignored"}},
      // The container's annotation overrides the pod's; another container's does not count.
      {{{"xschedd.io/priority", "10"}, {"xschedd.io/priority.container.main", "30"}}, "ml", "30 - - -", {}},
      {{{"xschedd.io/priority", "10"}, {"xschedd.io/priority.container.side", "30"}}, "ml", "10 - - -", {}},
      {{{"xschedd.io/prioritty", "10"}},
       "ml",
       "- - - -",
       {kWho + ": there is no annotation \"xschedd.io/prioritty\"; xschedd.io/ has priority, weight, latency, group "
               "and memory"}},
  };
  for (const Row& row : rows) {
    const Plan plan = PlanOf(row.annotations, row.space);
    INFO(row.annotations.begin()->first << " " << row.annotations.begin()->second);
    CHECK(plan.touches);
    CHECK(Asked(plan.claim) == row.asked);
    CHECK(plan.lines == row.lines);
    CHECK(plan.claim.has_ceiling());
    CHECK(plan.claim.priority() <= plan.claim.ceiling());
  }
}

TEST_CASE("an annotation limits device memory, at most to what the namespace has") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  const auto limit_of = [](const Annotations& annotations, const char* space) {
    return PlanOf(annotations, space).claim.memory_limit();
  };
  CHECK(limit_of({{"xschedd.io/memory", "12G"}}, "ml") == 12 * kGiB);
  CHECK(limit_of({{"xschedd.io/memory", "12Gi"}, {"xschedd.io/memory.container.main", "8G"}}, "ml") == 8 * kGiB);
  CHECK(limit_of({{"xschedd.io/memory", "12G"}}, "batch") == 12 * kGiB);
  CHECK(limit_of({{"xschedd.io/priority", "-40"}}, "batch") == 24 * kGiB);
  CHECK_FALSE(PlanOf({{"xschedd.io/priority", "1"}}, "ml").claim.has_memory_limit());
  const Plan above = PlanOf({{"xschedd.io/memory", "64G"}}, "batch");
  CHECK(above.claim.memory_limit() == 24 * kGiB);
  CHECK(above.lines == std::vector<std::string>{"pod batch/web-1, container main: memory 64G is above 24G, the ceiling "
                                                "of namespace batch; it gets 24G"});
  for (const char* const wrong : {"much", "24", "0", "-1G"}) {
    const Plan plan = PlanOf({{"xschedd.io/memory", wrong}}, "ml");
    INFO(wrong);
    CHECK_FALSE(plan.claim.has_memory_limit());
    REQUIRE(plan.lines.size() == 1);
    CHECK(plan.lines[0].starts_with(kWho + ": xschedd.io/memory: "));
  }
  CHECK(SettingsText(above.claim) == "priority -30, memory 24G");
}

TEST_CASE("a claim has a socket, the namespace's ceilings, and labels for people") {
  const Plan plan = PlanOf({{"xschedd.io/priority", "20"}});
  CHECK(plan.claim.name() == "nri-0123456789abcdef0123456789abcdef");
  CHECK(plan.claim.has_socket());
  CHECK(plan.claim.cgroup().empty());
  CHECK(plan.claim.ceiling() == 50);
  CHECK(plan.claim.weight_ceiling() == 200);
  CHECK(plan.claim.labels().size() == 3);
  CHECK(plan.claim.labels().at("pod") == "web-1");
  CHECK(plan.claim.labels().at("namespace") == "ml");
  CHECK(plan.claim.labels().at("container") == "main");
}

TEST_CASE("only containers with an annotation or a GPU are changed") {
  CHECK(!PlanOf({}).touches);
  CHECK(!PlanOf({{"example.com/xschedd.io", "1"}}).touches);
  // Another container's annotation does not count for this one.
  CHECK(!PlanOf({{"xschedd.io/priority.container.side", "5"}}).touches);
  const auto with = [](const std::string& device, const std::string& cdi, const std::string& variable) {
    api::Container container = MakeContainer();
    if (!device.empty()) container.mutable_linux()->add_devices()->set_path(device);
    if (!cdi.empty()) container.add_cdi_devices()->set_name(cdi);
    if (!variable.empty()) container.add_env(variable);
    return PlanOf({}, "ml", container);
  };
  CHECK(with("/dev/kfd", "", "").touches);
  CHECK(with("/dev/nvidia0", "", "").touches);
  CHECK(with("", "nvidia.com/gpu=0", "").touches);
  CHECK(with("", "amd.com/gpu=all", "").touches);
  CHECK(with("", "", "NVIDIA_VISIBLE_DEVICES=all").touches);
  CHECK(!with("/dev/null", "example.com/gpu=0", "NVIDIA_VISIBLE_DEVICES=void").touches);
  CHECK(!with("", "", "NVIDIA_VISIBLE_DEVICES=").touches);
  // It has the namespace's ceiling, and no priority of its own.
  CHECK(Asked(with("/dev/kfd", "", "").claim) == "- - - -");
  CHECK(with("/dev/kfd", "", "").claim.ceiling() == 50);
}

TEST_CASE("an invalid container id gives no claim's name") {
  CHECK(ClaimName("").empty());
  CHECK(ClaimName("short").empty());
  CHECK(ClaimName("../../../../../../../../../../../../etc").empty());
  CHECK(ClaimName(kId) == "nri-0123456789abcdef0123456789abcdef");
}

TEST_CASE("the configuration is checked, with file and line") {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"[default]\nceiling = 200\n", "nri.toml:2:"},
      {"[default]\nceilling = 20\n", "nri.toml:2:"},
      {"[namespace.a]\nceiling = 1\npriority = 2\n", "priority 2 is above the ceiling, 1"},
      {"[namespace]\na = 5\n", "[namespace.a] is not a table"},
      {"[namespace.a]\nweight_ceiling = 0\n", "nri.toml:2:"},
      {"[default]\nmemory = \"much\"\n", "nri.toml:2:"},
      {"[default]\nmemory = 24\n", "nri.toml:2:"},
      {"ceiling = 5\n", "nri.toml:1:"},
      {"[default\n", "correct the TOML syntax there"},
  };
  for (const Row& row : rows) {
    const auto settings = ParseSettings(row.text, "nri.toml");
    INFO(row.text);
    REQUIRE(!settings);
    CHECK(settings.error().Line().find(row.error) != std::string::npos);
  }
  const auto settings = ParseSettings(
      "shim = \"/a/libxschedd-shim.so\"\n[default]\nceiling = 5\npriority = 5\n[namespace.a]\nweight_ceiling = 300\n",
      "x");
  REQUIRE(settings);
  CHECK(settings->shim == "/a/libxschedd-shim.so");
  CHECK(settings->Of("b").priority == 5);
  CHECK(settings->Of("a").ceiling == 5);
  CHECK(settings->Of("a").weight_ceiling == 300);
  CHECK(!settings->Of("a").priority);
  CHECK(LoadSettings("/nowhere/nri.toml")->other.ceiling == 0);
}
