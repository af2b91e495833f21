// Small fleets calculated by hand, and what must hold of any.
#include <algorithm>

#include "tests/unit/fleet/fleets.h"
#include "tools/bench/fleet/compare.h"
#include "tools/bench/fleet/made_site.h"
#include "tools/bench/fleet/report.h"

using namespace xschedd::fleet;

namespace {

bool IsNear(double value, double expected, double part = 0.01) {
  INFO(value << " is not near " << expected);
  return std::abs(value - expected) <= part * expected;
}

FleetOptions On(std::uint32_t nodes, std::uint32_t gpus, bool shares = false, EngineKind engine = EngineKind::kSlurm) {
  FleetOptions options;
  options.size = {.nodes = nodes, .gpus = gpus, .shards = 4};
  options.engine = engine;
  options.shares = shares;
  return options;
}

const std::string kSpaces = R"({"space": "high", "tier": 2, "pattern": "work", "shards": 2, "priority": 50}
{"space": "low", "tier": 1, "pattern": "work", "shards": 2, "priority": -20}
)";

}  // namespace

TEST_CASE("exclusive GPUs: waits, ends and use as calculated by hand") {
  // Two GPUs. a: 0 to 100, b: 0 to 50, c waits 10..50 and runs to 110; 250 GPU seconds of work.
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "a", "space": "high", "at_s": 0, "seconds": 100}
    {"job": "b", "space": "high", "at_s": 0, "seconds": 50}
    {"job": "c", "space": "low", "at_s": 10, "seconds": 60}
  )");
  for (const EngineKind engine : {EngineKind::kSlurm, EngineKind::kKubernetes}) {
    Run run;
    const FleetResults results = run.Of(trace, On(1, 2, false, engine));
    CHECK(results.ended == 3);
    CHECK(results.spaces[0].waits_s == std::vector<double>{0, 0});
    CHECK(results.spaces[1].waits_s == std::vector<double>{40});
    CHECK(results.counted_s == 110);
    CHECK(IsNear(results.used_gpu_s, 210));
    CHECK(IsNear(results.busy_gpu_s, 210));
    CHECK(IsNear(results.patterns[0].work_s, 210));
    CHECK(results.most_used_gpus == 2);
  }
}

TEST_CASE("only what happens in the counted time is counted") {
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "a", "space": "high", "at_s": 0, "seconds": 100}
    {"job": "b", "space": "high", "at_s": 40, "seconds": 100}
    {"job": "c", "space": "low", "at_s": 50, "seconds": 100}
  )");
  FleetOptions options = On(1, 1);
  options.from_s = 30;
  options.to_s = 130;
  Run run;
  const FleetResults results = run.Of(trace, options);
  CHECK(results.counted_s == 100);
  CHECK(IsNear(results.used_gpu_s, 100));
  CHECK(results.ended == 1);
  CHECK(results.spaces[0].waits_s == std::vector<double>{60});
  CHECK(results.spaces[1].waits_s == std::vector<double>{80});  // until the end
  CHECK(results.spaces[1].waiting == 1);
}

TEST_CASE("two that always work share a GPU: both at half speed without xschedd, in order with it") {
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "a", "space": "high", "at_s": 0, "seconds": 100}
    {"job": "b", "space": "low", "at_s": 0, "seconds": 100}
  )");
  Run run;
  run.parameters.unscheduled = true;
  const FleetResults equal = run.Of(trace, On(1, 1, true));
  CHECK(IsNear(equal.counted_s, 200));
  CHECK(IsNear(equal.patterns[0].stretch, 4));  // both 200 s for 100
  run.parameters.unscheduled = false;
  const FleetResults claims = run.Of(trace, On(1, 1, true));
  CHECK(IsNear(claims.counted_s, 200, 0.1));
  CHECK(IsNear(claims.patterns[0].stretch, 1 + 2, 0.1));
  CHECK(claims.spaces[1].waits_s == std::vector<double>{0});
}

TEST_CASE("a job beside one that hardly works loses next to nothing") {
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "service", "space": "high", "at_s": 0, "seconds": 1000, "pattern": "idle"}
    {"job": "work", "space": "low", "at_s": 0, "seconds": 100}
  )");
  Run run;
  const FleetResults results = run.Of(trace, On(1, 1, true));
  CHECK(results.counted_s == 1000);  // a service runs for its time
  CHECK(results.most_used_gpus == 1);
  CHECK(IsNear(results.patterns[0].stretch, 1, 0.03));
  CHECK(results.patterns[1].latencies.QuantileMs(0.5) < 3);
}

TEST_CASE("Slurm: the first of the space blocks what would delay it, and nothing else") {
  // One GPU is taken until 100 (limit 100). `gang` needs both, so it is reserved for 100. `short` fits before it,
  // `long` does not.
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "a", "space": "high", "at_s": 0, "seconds": 100, "limit_s": 100}
    {"job": "gang", "space": "low", "at_s": 1, "seconds": 50, "gpus": 2, "limit_s": 60}
    {"job": "long", "space": "low", "at_s": 2, "seconds": 80, "limit_s": 200}
    {"job": "short", "space": "low", "at_s": 3, "seconds": 20, "limit_s": 30}
  )");
  Run run;
  const FleetResults slurm = run.Of(trace, On(1, 2));
  // short: at the first backfill after it came, 30; gang at 100; long after it, 150.
  CHECK(slurm.spaces[1].waits_s == std::vector<double>{27, 99, 148});
  // Kubernetes keeps nothing free for the gang: long from 2, short when a GPU is free, 82, and the gang at 102.
  const FleetResults kubernetes = run.Of(trace, On(1, 2, false, EngineKind::kKubernetes));
  CHECK(kubernetes.spaces[1].waits_s == std::vector<double>{0, 79, 101});
}

TEST_CASE("tiers come before arrival") {
  const Trace trace = ReadLines(kSpaces + R"(
    {"job": "a", "space": "low", "at_s": 0, "seconds": 100}
    {"job": "b", "space": "low", "at_s": 1, "seconds": 100}
    {"job": "c", "space": "high", "at_s": 2, "seconds": 100}
  )");
  for (const EngineKind engine : {EngineKind::kSlurm, EngineKind::kKubernetes}) {
    Run run;
    const FleetResults results = run.Of(trace, On(1, 1, false, engine));
    CHECK(results.spaces[0].waits_s == std::vector<double>{98});
    CHECK(results.spaces[1].waits_s == std::vector<double>{0, 199});
  }
}

TEST_CASE("places: first, least and most allocated") {
  Inventory inventory({.nodes = 3, .gpus = 2, .shards = 4});
  using Node = Inventory::NodeOrder;
  using Gpu = Inventory::GpuOrder;
  const Demand half{0, 2};
  inventory.Take(half, {2});  // node 1
  CHECK(*inventory.Find(half, Node::kFirst, Gpu::kFirst) == Place{0});
  CHECK(*inventory.Find(half, Node::kMostAllocated, Gpu::kFirst) == Place{2});
  CHECK(*inventory.Find(half, Node::kMostAllocated, Gpu::kLeastAllocated) == Place{3});
  inventory.Take(half, {0});
  CHECK(*inventory.Find(half, Node::kLeastAllocated, Gpu::kFirst) == Place{4});
  CHECK(*inventory.Find({2, 0}, Node::kFirst, Gpu::kFirst) == Place{4, 5});
  CHECK(!inventory.Find({4, 0}, Node::kFirst, Gpu::kFirst));
  CHECK(*inventory.Find({1, 0}, Node::kFirst, Gpu::kFirst, [](std::uint32_t n) { return n != 0; }) == Place{3});
  inventory.Release(half, {0});
  CHECK(*inventory.Find({4, 0}, Node::kFirst, Gpu::kFirst, [](std::uint32_t n) { return n != 1; }) ==
        Place{0, 1, 4, 5});
  CHECK_THROWS(inventory.Take({0, 3}, {2}));
  CHECK_THROWS(inventory.Release({0, 3}, {2}));
}

TEST_CASE("a made site: work is conserved, no GPU has more than it holds, and a seed gives the same again") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const FleetSize size{.nodes = 6, .gpus = 8, .shards = 4};
    Trace trace = MakeSite({.size = size, .days = 0.2, .load = 1.2, .seed = seed});
    double work_s = 0;
    for (Job& job : trace.jobs) {
      job.pattern = job.pattern == "train" || job.pattern == "batch" ? "work" : "idle";
      job.seconds = std::min(job.seconds, 20'000.0);
      work_s += job.pattern == "work" ? job.seconds * std::max(job.demand.gpus, 1u) : 0;
    }
    for (const EngineKind engine : {EngineKind::kSlurm, EngineKind::kKubernetes}) {
      for (const Placing placing : {Placing::kDefault, Placing::kSpread, Placing::kPack}) {
        for (const bool shares : {false, true}) {
          FleetOptions options = On(size.nodes, size.gpus, shares, engine);
          options.placing = placing;
          double last_s = 0;
          options.watch = [&](double now_s, const Inventory& inventory) {
            CHECK(now_s >= last_s);
            last_s = now_s;
            for (std::uint32_t gpu = 0; gpu < inventory.Gpus(); ++gpu)
              if (inventory.FreeShards(gpu) > size.shards) FAIL("more is free than there is");
          };
          Run run;
          const FleetResults results = run.Of(trace, options);
          CHECK(results.ended == trace.jobs.size());
          CHECK(results.started == trace.jobs.size());
          CHECK(IsNear(results.patterns[0].work_s, work_s));
          CHECK(results.busy_gpu_s <= results.used_gpu_s * 1.0001);
          CHECK(results.most_used_gpus <= results.gpus);
          last_s = 0;
          const FleetResults again = run.Of(trace, options);
          CHECK(again.used_gpu_s == results.used_gpu_s);
          CHECK(again.spaces[1].waits_s == results.spaces[1].waits_s);
        }
      }
    }
  }
}

TEST_CASE("a made site is the same for its seed, another for another, and of the load that was asked for") {
  const MadeSite site{.size = {.nodes = 200, .gpus = 8, .shards = 4}, .days = 2, .load = 0.8, .seed = 5};
  std::ostringstream first;
  WriteTrace(MakeSite(site), first);
  std::ostringstream second;
  WriteTrace(MakeSite(site), second);
  CHECK(first.str() == second.str());
  MadeSite other = site;
  other.seed = 6;
  std::ostringstream third;
  WriteTrace(MakeSite(other), third);
  CHECK(first.str() != third.str());
  // GPU time that comes in a day, relative to that of the fleet.
  double gpu_s = 0;
  for (const Job& job : MakeSite(site).jobs)
    if (job.arrival_s > 0) gpu_s += job.seconds * std::max(job.demand.gpus, 1u);
  CHECK(IsNear(gpu_s / (1600 * 2 * kDayS), 0.8, 0.15));
}

TEST_CASE("a comparison: the same trace alone and shared, and how many GPUs give the same waits") {
  // Four services that hardly work and four jobs: eight GPUs exclusively, four shared.
  std::string lines = kSpaces;
  for (int i = 0; i < 4; ++i) {
    lines += "{\"job\": \"s" + std::to_string(i) +
             "\", \"space\": \"high\", \"at_s\": 0, \"seconds\": 1000, \"pattern\": \"idle\"}\n";
    lines += "{\"job\": \"w" + std::to_string(i) + "\", \"space\": \"low\", \"at_s\": 0, \"seconds\": 900}\n";
  }
  const Trace trace = ReadLines(lines);
  const Patterns patterns = TestPatterns();
  CompareOptions options;
  options.fleet = On(8, 1);
  options.mix_warm_up_s = 1;
  options.mix_seconds = 4;
  const auto comparison = Compare(trace, patterns, options);
  REQUIRE(comparison);
  REQUIRE(comparison->ways.size() == 3);
  CHECK(comparison->ways[0].needed_nodes == 8);
  CHECK(comparison->ways[2].needed_nodes == 4);
  CHECK(comparison->ways[0].results.most_used_gpus == 8);
  CHECK(comparison->ways[2].results.most_used_gpus == 4);
  const Subject subject{.trace = "t",
                        .patterns = "p",
                        .engine = "slurm",
                        .placing = "default",
                        .policy = "priority",
                        .commit = "c",
                        .date = "d",
                        .jobs = 8,
                        .options = options};
  const nlohmann::json json = ToJson(subject, trace, patterns, *comparison);
  CHECK(json["ways"]["exclusive"]["gpus"]["needed"] == 8);
  CHECK(json["ways"]["claims"]["patterns"]["idle"]["latency_p50_times_alone"].get<double>() < 3);
  CHECK(json["ways"]["exclusive"]["patterns"]["work"]["speed_percent"] == 100);
  const std::string page = Page(subject, trace, patterns, *comparison, "command", "name.json");
  CHECK(page.find("No figure here was measured on a GPU") != std::string::npos);
  CHECK(page.find("needed for the waits of exclusive") != std::string::npos);
}
