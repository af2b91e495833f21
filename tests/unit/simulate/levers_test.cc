// In workloads with a known answer the policy learns whether holding helps, and holding starves no client in any
// workload.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>

#include "tests/unit/simulate/workloads.h"
#include "tools/bench/simulate/simulation.h"

using namespace xschedd::simulate;

namespace {

namespace policy = xschedd::policy;

constexpr std::uint32_t kUsualSeeds = 60;

Workload Shipped(const std::string& name) {
  const std::string path = std::string(XSCHEDD_WORKLOADS) + "/" + name + ".jsonl";
  std::ifstream file(path);
  xschedd::Result<Workload> workload = ReadWorkload(file, path);
  INFO(path);
  REQUIRE(workload);
  workload->length_ns = 60 * kS;
  return *workload;
}

struct Outcome {
  double chat_s = 0;  // the time in which the chat had work
  double others = 0;  // the others' GPU time in s
  double held = 0;    // as a part of the others' time with work
  double beside = 0;
  double longest_s = 0;
};

Outcome Run(const Workload& workload, std::uint32_t tolerance_percent, bool time_slices = false) {
  Parameters parameters;
  parameters.settings.tolerance_percent = tolerance_percent;
  parameters.settings.time_slices = time_slices;
  const Results results = Simulate(workload, parameters);
  Outcome outcome;
  double work = 0;
  for (const ClassResult& result : results.classes) {
    outcome.longest_s = std::max(outcome.longest_s, static_cast<double>(result.longest_ns) / 1e9);
    if (result.name == "chat") {
      outcome.chat_s = static_cast<double>(result.work_ns) / 1e9;
      continue;
    }
    work += static_cast<double>(result.work_ns);
    outcome.others += static_cast<double>(result.gpu_ns) / 1e9;
    outcome.held += static_cast<double>(result.held_ns);
    outcome.beside += static_cast<double>(result.beside_ns);
  }
  outcome.held /= work;
  outcome.beside /= work;
  return outcome;
}

// Random workloads that use all features, small enough to be simulated quickly.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}

  std::uint32_t From(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }
  bool Chance(std::uint32_t of) { return From(1, of) == 1; }

  Workload AnyWorkload() {
    Workload workload;
    workload.name = "any";
    workload.devices = From(1, 2);
    workload.length_ns = 25 * kS;
    DeviceKind& kind = workload.kind;
    if (Chance(2)) {
      kind.slice_ns = From(500, 4'000) * policy::kNsPerUs;
      kind.switch_ns = From(0, 200) * policy::kNsPerUs;
    }
    kind.side_by_side = Chance(2) ? 1 : From(2, 8);
    kind.slower = Chance(2) ? 0 : From(1, 100) / 100.0;
    const std::uint32_t clients = From(2, 6);
    const bool gangs = Chance(3);
    for (std::uint32_t i = 0; i < clients; ++i)
      workload.clients.push_back(AnyClient(i, workload.devices, gangs));
    return workload;
  }

  policy::Settings AnySettings(policy::Name name) {
    policy::Settings settings;
    settings.name = name;
    settings.guard_ms_per_s = From(5, 40);
    settings.turn_ms = From(5, 50);
    settings.time_slices = Chance(2);
    settings.tolerance_percent = Chance(3) ? 0 : From(1, 30);
    if (Chance(2)) settings.max_concurrent = From(0, 2);
    return settings;
  }

 private:
  ClientSpec AnyClient(std::uint32_t index, std::uint32_t devices, bool gangs) {
    ClientSpec client;
    client.name = client.class_name = "client-" + std::to_string(index);
    if (gangs && Chance(2)) client.group = "gang";
    client.devices = {From(0, devices - 1)};
    if (devices == 2 && Chance(4)) client.devices = {0, 1};
    client.priority = static_cast<int>(From(0, 3)) * 10;
    client.weight = Chance(3) ? From(1, 4) * 100 : 100;
    client.deadline_ns = Chance(4) ? From(10, 100) * kMs : 0;
    client.streams = Chance(3) ? 2 : 1;
    client.spread = Chance(2) ? 0.3 : 0;
    Program program;
    for (std::uint32_t bursts = From(1, 3); bursts != 0; --bursts) {
      Burst burst;
      burst.kernel_ns = From(20, Chance(2) ? 200 : 3'000) * policy::kNsPerUs;
      burst.count = From(1, 50);
      if (Chance(2)) burst.launch_ns = From(5, 100) * policy::kNsPerUs;
      program.push_back(burst);
    }
    switch (From(0, 2)) {
      case 0:
        client.arrivals = {.kind = ArrivalKind::kSaturating, .depth = From(1, 32)};
        break;
      case 1:
        client.arrivals = {.kind = ArrivalKind::kClosed, .think_ns = From(0, 20) * kMs};
        program.back().gap_ns = Chance(2) ? From(20, 300) * policy::kNsPerUs : 0;
        break;
      default:
        client.arrivals = {.kind = ArrivalKind::kPoisson, .rate = From(1, 20) * 1.0};
        break;
    }
    client.programs = {program};
    return client;
  }

  std::mt19937 random_;
};

ClassResult ClassOf(const Results& results, const std::string& name) {
  const auto found = std::find_if(results.classes.begin(), results.classes.end(),
                                  [&](const ClassResult& result) { return result.name == name; });
  REQUIRE(found != results.classes.end());
  return *found;
}

// The longest time that a kernel takes on a device that all clients keep busy: a kernel of each stream runs first, or
// all clients' time slices before each of its own.
std::uint64_t ThroughNs(const Workload& workload) {
  std::uint64_t longest = 0;
  std::uint64_t streams = 0;
  for (const ClientSpec& client : workload.clients) {
    streams += client.streams;
    for (const Burst& burst : client.programs[0])
      longest = std::max(longest, burst.kernel_ns * 13 / 10);
  }
  const DeviceKind& kind = workload.kind;
  const double slowest = static_cast<double>(longest) * (1 + kind.slower * (kind.side_by_side - 1));
  if (!kind.HasSlices()) return static_cast<std::uint64_t>(slowest * static_cast<double>(streams + 1));
  const double slices = std::ceil(slowest / (200.0 * policy::kNsPerUs)) * static_cast<double>(workload.clients.size());
  return static_cast<std::uint64_t>(slices * static_cast<double>(20 * kMs + kind.switch_ns));
}

}  // namespace

TEST_CASE("others run beside a client bound by its host, and are held for one bound by the device") {
  for (const char* const others : {"one", "four"}) {
    const Workload workload = Shipped(fmt::format("chat-eager-{}-side-by-side", others));
    INFO(workload.name);
    const Outcome always = Run(workload, 0);
    const Outcome learnt = Run(workload, 5);
    CHECK(always.held > 0.3);
    CHECK(learnt.held < 0.02);
    CHECK(learnt.beside > 0.3);
    CHECK(learnt.others > always.others * 1.4);
    for (const char* const kind : {"side-by-side", "slices"}) {
      const Outcome graph = Run(Shipped(fmt::format("chat-graph-{}-{}", others, kind)), 5);
      INFO(kind);
      CHECK(graph.held > 0.3);
      CHECK(graph.beside < 0.02);
    }
  }
}

TEST_CASE("on any device, learning costs the important client at most the tolerance, and the others nothing") {
  for (const char* const chat : {"eager", "graph"}) {
    for (const char* const others : {"one", "four"}) {
      for (const char* const kind : {"side-by-side", "slices"}) {
        const Workload workload = Shipped(fmt::format("chat-{}-{}-{}", chat, others, kind));
        INFO(workload.name);
        for (const bool time_slices : {false, true}) {
          if (time_slices && !workload.kind.HasSlices()) continue;
          const Outcome always = Run(workload, 0, time_slices);
          const Outcome learnt = Run(workload, 5, time_slices);
          // The tolerance counts at most once for each client that runs beside it.
          const double others_beside = static_cast<double>(workload.clients.size() - 1);
          CHECK(learnt.chat_s <= always.chat_s * (1 + 0.05 * others_beside));
          CHECK(learnt.others >= always.others * 0.99);
          CHECK(learnt.longest_s <= static_cast<double>(workload.clients.size()) + 1);
        }
      }
    }
  }
}

TEST_CASE("programs bound by their host get more than in turns one at a time, and the important ones lose nothing") {
  const Workload workload = Shipped("six-eager-slices");
  const auto gpu_s = [&](std::optional<std::uint32_t> max_concurrent, const std::string& name) {
    Parameters parameters;
    parameters.settings.max_concurrent = max_concurrent;
    return static_cast<double>(ClassOf(Simulate(workload, parameters), name).gpu_ns) / 1e9;
  };
  CHECK(gpu_s({}, "middle") > 1.2 * gpu_s(1, "middle"));
  CHECK(gpu_s({}, "high") > 0.99 * gpu_s(1, "high"));
}

TEST_CASE("of equals in turns one that pauses has its part, and one that seldom works does not wait for all turns") {
  const Results results = Simulate(Shipped("equals-slices"), Parameters{});
  const auto gpu_ns = [&](const std::string& name) { return static_cast<double>(ClassOf(results, name).gpu_ns); };
  CHECK(gpu_ns("training") > 0.7 * gpu_ns("ahead"));
  CHECK(gpu_ns("training") > 0.6 * gpu_ns("loop"));
  CHECK(ClassOf(results, "notebook").QuantileMs(0.5) < policy::Settings{}.turn_ms / 4.0);
}

TEST_CASE("of equals in turns one with launches longer than a turn has its part, and no more") {
  const Results results = Simulate(Shipped("equals-long-slices"), Parameters{});
  const auto gpu_ns = [&](const std::string& name) { return static_cast<double>(ClassOf(results, name).gpu_ns); };
  CHECK(gpu_ns("graph") > 0.9 * gpu_ns("loop"));
  CHECK(gpu_ns("graph") < 1.1 * gpu_ns("loop"));
  CHECK(gpu_ns("training") > 0.7 * gpu_ns("loop"));
}

TEST_CASE("no client starves in any workload, under any policy, on any device") {
  // docs/explanation/policies.md, "Nobody waits for ever": within n + 1 seconds, plus the time on the device.
  const char* const seeds = std::getenv("XSCHEDD_POLICY_SEEDS");
  const std::uint32_t count = seeds == nullptr ? kUsualSeeds : static_cast<std::uint32_t>(std::atoi(seeds));
  for (std::uint32_t seed = 0; seed < count; ++seed) {
    Dice dice(seed);
    const Workload workload = dice.AnyWorkload();
    Parameters parameters;
    parameters.seed = seed + 1;
    parameters.settings = dice.AnySettings(static_cast<policy::Name>(seed % policy::Names().size()));
    const Results results = Simulate(workload, parameters);
    const std::uint64_t bound = (workload.clients.size() + 1) * kS + ThroughNs(workload);
    for (const ClassResult& result : results.classes) {
      INFO("seed " << seed << ", " << result.name << ", bound " << static_cast<double>(bound) / 1e9 << " s");
      CHECK(static_cast<double>(result.longest_ns) / 1e9 <= static_cast<double>(bound) / 1e9);
    }
  }
}
