// The simulator's arithmetic: small cases calculated by hand, and properties of every workload that is shipped.
#include "tools/bench/simulate/simulation.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/unit/simulate/workloads.h"
#include "tools/bench/simulate/arrival_source.h"
#include "tools/bench/simulate/report.h"
#include "tools/bench/simulate/share_meter.h"

using namespace xschedd::simulate;

namespace {

double BusyPart(const Results& results, std::size_t device = 0) {
  return static_cast<double>(results.device_busy_ns[device]) / static_cast<double>(results.length_ns);
}
double GpuPart(const Results& results, std::size_t class_index) {
  return static_cast<double>(results.classes[class_index].gpu_ns) / static_cast<double>(results.length_ns);
}
double WorstMs(const Results& results, std::size_t class_index) {
  return results.classes[class_index].QuantileMs(1);
}
Parameters Unscheduled() {
  Parameters parameters;
  parameters.unscheduled = true;
  return parameters;
}

// Others are always held, so that results can be calculated by hand, without trials.
Parameters Holding() {
  Parameters parameters;
  parameters.settings.tolerance_percent = 0;
  return parameters;
}

// A request of 4 kernels of 1 ms every 50 ms, beside kernels of 0.7 ms without end.
constexpr const char* kRequestBesideBatch = R"(
  {"workload": "t", "seconds": 10}
  {"client": "high", "priority": 1, "arrivals": {"kind": "periodic", "period_ms": 50, "phase_ms": 10}, "kernels": [{"us": 1000, "count": 4}]}
  {"client": "low", "arrivals": {"kind": "saturating", "depth": 16}, "kernels": [{"us": 700}]}
)";

}  // namespace

TEST_CASE("alone: a request takes as long as its kernels, and nothing is decided") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 10}
    {"client": "a", "arrivals": {"kind": "periodic", "period_ms": 10}, "kernels": [{"us": 1000, "count": 6}, {"us": 500, "count": 2, "gap_us": 250}]}
  )");
  const Results results = Simulate(workload, Parameters{});
  // 6 × 1 ms + 2 × (0.5 ms + 0.25 ms on the host) = 7.5 ms, of which the device is busy 7.
  CHECK(results.classes[0].requests == 1000);
  CHECK(results.classes[0].QuantileMs(0.01) == 7.5);
  CHECK(WorstMs(results, 0) == 7.5);
  CHECK(BusyPart(results) == 0.7);
  CHECK(results.decisions == 1);  // at the start
  CHECK(results.gate_changes == 0);
}

TEST_CASE("two equals take turns kernel by kernel") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 10}
    {"client": "a", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 3000}]}
    {"client": "b", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
  )");
  const Results results = Simulate(workload, Parameters{});
  CHECK(results.classes[0].requests == Approx(2500).margin(1));
  CHECK(results.classes[1].requests == Approx(2500).margin(1));
  CHECK(BusyPart(results) == 1.0);
  CHECK(GpuPart(results, 0) == Approx(0.75));
}

TEST_CASE("a client with two streams has two turns") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 9}
    {"client": "a", "streams": 2, "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
    {"client": "b", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
  )");
  const Results results = Simulate(workload, Parameters{});
  CHECK(GpuPart(results, 0) == Approx(2.0 / 3).margin(0.001));
}

TEST_CASE("kernels run side by side where the device has room") {
  Workload workload = Read(R"(
    {"workload": "t", "seconds": 10, "side_by_side": 2}
    {"client": "a", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
    {"client": "b", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
  )");
  Results results = Simulate(workload, Parameters{});
  CHECK(GpuPart(results, 0) == 1.0);
  CHECK(GpuPart(results, 1) == 1.0);
  CHECK(BusyPart(results) == 1.0);
  // One client on two streams: its overlap counts once.
  workload.clients.pop_back();
  workload.clients[0].streams = 2;
  results = Simulate(workload, Parameters{});
  CHECK(GpuPart(results, 0) == 1.0);
  CHECK(results.classes[0].kernels == Approx(20'000).margin(2));
}

TEST_CASE("kernels side by side make each other slower by as much as the device says") {
  Workload workload = Read(R"(
    {"workload": "t", "seconds": 10, "side_by_side": 3, "slower": 0.25}
    {"client": "a", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
    {"client": "b", "count": 2, "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
  )");
  // Each takes 1 + 2 × 0.25 ms beside two others, and 1.25 beside one.
  Results results = Simulate(workload, Parameters{});
  CHECK(results.classes[0].kernels == Approx(6667).margin(1));
  CHECK(GpuPart(results, 0) == 1.0);
  workload.clients.pop_back();
  CHECK(Simulate(workload, Parameters{}).classes[0].kernels == Approx(8000).margin(1));
  // A long one is slower for as long as the short one is there: 10 ms and a fifth of what 2 ms take.
  workload.clients[0].arrivals = {.kind = ArrivalKind::kClosed, .think_ns = 100 * kMs};
  workload.clients[0].programs[0] = {{.kernel_ns = 10 * kMs}};
  workload.clients[1].arrivals = workload.clients[0].arrivals;
  workload.clients[1].programs[0] = {{.kernel_ns = 2 * kMs}};
  results = Simulate(workload, Parameters{});
  CHECK(WorstMs(results, 0) == Approx(10.5).margin(0.001));
  CHECK(results.classes[1].QuantileMs(0.01) == Approx(2).margin(0.001));
  CHECK(WorstMs(results, 1) == Approx(2.5).margin(0.001));
}

TEST_CASE("a host that launches runs ahead of the device until it synchronises") {
  Workload workload = Read(R"(
    {"workload": "t", "seconds": 10}
    {"client": "a", "arrivals": {"kind": "periodic", "period_ms": 20}, "kernels": [{"us": 10, "count": 99, "launch_us": 50}, {"us": 10, "launch_us": 50, "gap_us": 500}]}
  )");
  // 100 launches, the last kernel, and what follows the synchronisation; the device has 1 ms of it.
  Results results = Simulate(workload, Parameters{});
  CHECK(results.classes[0].QuantileMs(0.01) == 5.51);
  CHECK(WorstMs(results, 0) == 5.51);
  CHECK(BusyPart(results) == Approx(0.05).margin(0.0001));
  // It is busy from its first launch to the synchronisation, as for a shim.
  CHECK(results.classes[0].work_ns == 500ULL * (5'010'000 - 50'000));
  // If kernels take longer than launches, the device waits only for the first.
  workload.clients[0].programs[0] = {{.kernel_ns = 100'000, .count = 100, .launch_ns = 50'000}};
  results = Simulate(workload, Parameters{});
  CHECK(WorstMs(results, 0) == 10.05);
}

TEST_CASE("time slices: processes take turns, their kernels stop in between, and each switch takes time") {
  Workload workload = Read(R"(
    {"workload": "t", "seconds": 10, "slice_us": 2000, "switch_us": 500}
    {"client": "a", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 10000}]}
    {"client": "b", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
  )");
  Results results = Simulate(workload, Parameters{});
  CHECK(BusyPart(results) == Approx(0.8).margin(0.001));
  CHECK(GpuPart(results, 0) == Approx(0.4).margin(0.001));
  CHECK(GpuPart(results, 1) == Approx(0.4).margin(0.001));
  CHECK(results.classes[0].kernels == Approx(400).margin(2));
  CHECK(results.context_switches == Approx(4000).margin(2));
  // A process that is alone is not interrupted.
  workload.clients.pop_back();
  results = Simulate(workload, Parameters{});
  CHECK(BusyPart(results) == 1.0);
  CHECK(results.context_switches == 0);
}

TEST_CASE("time slices: short ones let the important client interrupt a kernel") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 10, "slice_us": 2000, "switch_us": 100}
    {"client": "high", "priority": 1, "arrivals": {"kind": "periodic", "period_ms": 51.7, "phase_ms": 100}, "kernels": [{"us": 1000, "count": 4}]}
    {"client": "low", "arrivals": {"kind": "saturating", "depth": 16}, "kernels": [{"us": 30000}]}
  )");
  Parameters parameters = Holding();
  parameters.settings.time_slices = false;
  // The rest of a slice, the change, 2 ms of its own, the same once more, and its rest.
  Results results = Simulate(workload, parameters);
  CHECK(WorstMs(results, 0) > 4 + 2 * 0.1 + 2);
  CHECK(WorstMs(results, 0) < 4 + 3 * 0.1 + 2 * 2);
  // At most a short slice, and its own is long.
  parameters.settings.time_slices = true;
  results = Simulate(workload, parameters);
  CHECK(WorstMs(results, 0) <= 4 + 0.2 + 0.1);
  CHECK(results.classes[1].kernels > 290);
}

TEST_CASE("time slices: shares are worse side by side, where a client measures the slices of others as its GPU time") {
  // As on a real device (docs/explanation/performance.md): shares are kept better where processes take turns than side
  // by side.
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 20, "slice_us": 2000, "switch_us": 150}
    {"client": "a", "weight": 75, "arrivals": {"kind": "saturating", "depth": 16}, "kernels": [{"us": 1500}]}
    {"client": "b", "weight": 25, "arrivals": {"kind": "saturating", "depth": 16}, "kernels": [{"us": 1000}]}
  )");
  const auto part = [&](std::uint32_t max_concurrent) {
    Parameters parameters;
    if (max_concurrent == 0) parameters.settings.max_concurrent = 0;
    const Results results = Simulate(workload, parameters);
    return GpuPart(results, 0) / (GpuPart(results, 0) + GpuPart(results, 1));
  };
  CHECK(part(1) == Approx(0.75).margin(0.05));
  CHECK(part(0) > part(1) + 0.02);
}

TEST_CASE("share: clients of one owner have one part together") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 20}
    {"client": "a", "owner": "alice", "count": 3, "arrivals": {"kind": "saturating", "depth": 8}, "kernels": [{"us": 500}]}
    {"client": "b", "owner": "bob", "arrivals": {"kind": "saturating", "depth": 8}, "kernels": [{"us": 500}]}
  )");
  Parameters parameters;
  parameters.settings.name = xschedd::policy::Name::kShare;
  const Results results = Simulate(workload, parameters);
  CHECK(GpuPart(results, 0) / (GpuPart(results, 0) + GpuPart(results, 1)) == Approx(0.5).margin(0.02));
  std::ostringstream written;
  WriteWorkload(workload, written);
  CHECK(Read(written.str()).clients[2].owner == "alice");
}

TEST_CASE("priority: the important client waits only for work that is already on the device") {
  const Workload workload = Read(kRequestBesideBatch);
  // Unscheduled, a kernel of the other runs before each of the 4, the first of them in part: at least 4 + 3 × 0.7.
  const Results without = Simulate(workload, Unscheduled());
  CHECK(without.classes[0].QuantileMs(0.01) >= 4 + 3 * 0.7);
  CHECK(WorstMs(without, 0) <= 4 + 4 * 0.7);
  // Scheduled, two are in flight when the request comes (a lone background client's floor).
  const Results results = Simulate(workload, Holding());
  CHECK(results.classes[0].requests == 200);
  CHECK(results.classes[0].QuantileMs(0.01) >= 4);
  CHECK(WorstMs(results, 0) <= 4 + 2 * 0.7);
  CHECK(results.classes[1].beside_ns == 0);
  CHECK(results.classes[1].work_ns > 10 * kS - kMs);
  // Held from each request's arrival to its end and the linger after it: at least 4.2 ms of each 50, and less than 6.
  CHECK(results.classes[1].held_ns > kMs * 200 * 42 / 10);
  CHECK(results.classes[1].held_ns < kMs * 200 * 6);
}

TEST_CASE("the window limits the work that the important client finds on the device") {
  Workload workload = Read(kRequestBesideBatch);
  workload.clients[0].programs[0] = {{.kernel_ns = 100'000, .count = 20}};
  workload.clients[1].programs[0] = {{.kernel_ns = 100'000}};
  Parameters parameters = Holding();
  parameters.settings.window_us = 500;
  // 2 ms of its own; five kernels of the other in flight, and none after them. The first request comes when nothing is
  // measured yet.
  const double small = WorstMs(Simulate(workload, parameters), 0);
  CHECK(small > 2.3);
  CHECK(small <= 2.5);
  parameters.settings.window_us = 1000;
  const double large = WorstMs(Simulate(workload, parameters), 0);
  CHECK(large > 2.8);
  CHECK(large <= 3.0);
}

TEST_CASE("the device is idle for linger and wake-up after each request") {
  Workload workload = Read(kRequestBesideBatch);
  workload.clients[0].arrivals.period_ns = 10 * kMs;
  // Eight kernels, so that the other's five in flight are done before the last of them.
  workload.clients[0].programs[0] = {{.kernel_ns = 500'000, .count = 8}};
  workload.clients[1].programs[0] = {{.kernel_ns = 100'000}};
  Parameters parameters = Holding();
  parameters.settings.linger_us = 200;
  parameters.wake_us = 60;
  CHECK(BusyPart(Simulate(workload, parameters)) == Approx(1 - 0.026).margin(0.001));
  parameters.settings.linger_us = 1000;
  CHECK(BusyPart(Simulate(workload, parameters)) == Approx(1 - 0.106).margin(0.002));
  // Without linger, the time of the decision remains.
  parameters.settings.linger_us = 0;
  parameters.wake_us = 500;
  parameters.decision_us = 200;
  CHECK(BusyPart(Simulate(workload, parameters)) == Approx(1 - 0.07).margin(0.001));
}

TEST_CASE("the starvation guard gives a held client its part of each second") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 20}
    {"client": "high", "priority": 1, "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 500}]}
    {"client": "low", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 500}]}
  )");
  Parameters parameters = Holding();
  parameters.settings.guard_ms_per_s = 0;
  CHECK(GpuPart(Simulate(workload, parameters), 1) < 0.001);
  parameters.settings.guard_ms_per_s = 100;
  // Open for 100 ms a second, and taking turns with the important client on the device then.
  CHECK(GpuPart(Simulate(workload, parameters), 1) == Approx(0.05).margin(0.005));
}

TEST_CASE("two gangs whose ranks wait for each other both progress") {
  const char* const lines = R"(
    {"workload": "t", "devices": 2, "seconds": 10}
    {"client": "a0", "class": "a", "group": "a", "barrier": true, "priority": 1, "devices": [0], "arrivals": {"kind": "closed", "think_ms": 5}, "kernels": [{"us": 1000, "count": 5}]}
    {"client": "a1", "class": "a", "group": "a", "barrier": true, "priority": 1, "devices": [1], "arrivals": {"kind": "closed", "think_ms": 5}, "kernels": [{"us": 1000, "count": 3}]}
    {"client": "b1", "class": "b", "group": "b", "barrier": true, "devices": [1], "arrivals": {"kind": "closed"}, "kernels": [{"us": 1000, "count": 4}]}
    {"client": "b0", "class": "b", "group": "b", "barrier": true, "devices": [0], "arrivals": {"kind": "closed"}, "kernels": [{"us": 1000, "count": 4}]}
  )";
  const Results results = Simulate(Read(lines), Parameters{});
  // Each waits for the slower rank: an iteration of a is 5 ms, then 5 ms of pause, in which b has the devices.
  CHECK(results.classes[0].QuantileMs(0.01) >= 5);
  CHECK(results.classes[0].requests > 1'200);
  CHECK(results.classes[1].requests > 1'200);
  CHECK(results.classes[0].requests % 2 == 0);
}

TEST_CASE("a client that drops does not fall behind") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 10}
    {"client": "a", "deadline_ms": 10, "arrivals": {"kind": "periodic", "period_ms": 10, "drop": true}, "kernels": [{"us": 15000}]}
  )");
  const Results results = Simulate(workload, Parameters{});
  CHECK(results.classes[0].requests == 500);
  CHECK(results.classes[0].dropped == 500);
  CHECK(results.classes[0].misses == 500);
  CHECK(WorstMs(results, 0) == 15);
}

TEST_CASE("the same seed gives the same results, and another seed gives others") {
  const Workload workload = Read(R"(
    {"workload": "t", "seconds": 20}
    {"client": "a", "priority": 1, "spread": 0.4, "arrivals": {"kind": "poisson", "rate": 30}, "kernels": [{"us": 800, "count": 8}]}
    {"client": "b", "count": 3, "arrivals": {"kind": "saturating"}, "kernels": [{"us": 900}]}
  )");
  Parameters parameters;
  const auto run = [&] { return ToJson(Simulate(workload, parameters), Simulate(workload, Unscheduled())).dump(); };
  const std::string first = run();
  CHECK(run() == first);
  parameters.seed = 2;
  CHECK(run() != first);
}

TEST_CASE("no work is lost and no device is overbooked, in every workload shipped, under every policy") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(XSCHEDD_WORKLOADS)) {
    std::ifstream file(entry.path());
    xschedd::Result<Workload> workload = ReadWorkload(file, entry.path().string());
    INFO(entry.path().string());
    REQUIRE(workload);
    workload->length_ns = 3 * kS;
    for (std::size_t policy = 0; policy <= xschedd::policy::Names().size(); ++policy) {
      Parameters parameters;
      parameters.unscheduled = policy == xschedd::policy::Names().size();
      if (!parameters.unscheduled) parameters.settings.name = static_cast<xschedd::policy::Name>(policy);
      const Results results = Simulate(*workload, parameters);
      CHECK(results.launched == results.completed + results.left);
      CHECK(results.completed > 0);
      std::uint64_t busy = 0;
      for (const std::uint64_t ns : results.device_busy_ns) {
        CHECK(ns <= results.length_ns);
        busy += ns;
      }
      // At most as many kernels at a time as the device has room for.
      CHECK(results.GpuNs() >= busy);
      CHECK(results.GpuNs() <= busy * workload->kind.side_by_side);
      std::uint64_t kernels = 0;
      for (const ClassResult& result : results.classes) {
        kernels += result.kernels;
        if (parameters.unscheduled) CHECK(result.held_ns == 0);
      }
      CHECK(kernels == results.completed);
    }
    ++count;
  }
  CHECK(count >= 7);
}

TEST_CASE("arrivals have the configured rate, and never go back in time") {
  ClientSpec spec;
  const auto count = [&](std::uint64_t seconds) {
    ArrivalSource source(spec, 7);
    std::uint64_t last = 0;
    std::uint64_t arrivals = 0;
    for (std::uint64_t next = source.Next(); next < seconds * kS; next = source.Next()) {
      REQUIRE(next >= last);
      last = next;
      ++arrivals;
    }
    return arrivals;
  };
  spec.arrivals = {.kind = ArrivalKind::kPoisson, .rate = 50};
  CHECK(count(1000) == Approx(50'000).epsilon(0.02));
  spec.arrivals = {.kind = ArrivalKind::kOnOff, .rate = 100, .on_ns = 200 * kMs, .off_ns = 600 * kMs};
  CHECK(count(2000) == Approx(50'000).epsilon(0.05));
  spec.arrivals = {.kind = ArrivalKind::kPeriodic, .period_ns = 20 * kMs, .phase_ns = 1};
  CHECK(count(10) == 500);
}

TEST_CASE("the share meter finds the worst second") {
  ShareMeter meter({0.75, 0.25}, 6 * kS);
  // 3 : 1 in each 40 ms; in the fourth second 300 ms are the other's.
  for (std::uint64_t at = 0; at < 6 * kS; at += 40 * kMs) {
    meter.Add(0, at, at + 30 * kMs);
    meter.Add(1, at + 30 * kMs, at + 40 * kMs);
  }
  CHECK(meter.WorstError(0) < 1);
  ShareMeter late({0.75, 0.25}, 6 * kS);
  for (std::uint64_t at = 0; at < 6 * kS; at += 40 * kMs) {
    const bool is_off = at >= 3 * kS && at < 3 * kS + 400 * kMs;
    late.Add(is_off ? 1 : 0, at, at + 30 * kMs);
    late.Add(1, at + 30 * kMs, at + 40 * kMs);
  }
  CHECK(late.WorstError(0) == Approx(30).margin(1));
  CHECK(late.WorstError(1) == Approx(30).margin(1));
  CHECK(std::isnan(ShareMeter({1.0}, kS).WorstError(0)));
}
