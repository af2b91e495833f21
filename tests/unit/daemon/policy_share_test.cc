// Shares: as tables, and over seconds on a model device (policy_device.h).
#include <cmath>
#include <random>

#include "tests/unit/daemon/policy_device.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

constexpr std::uint64_t kUs = kNsPerUs;
constexpr std::uint64_t kMs = kNsPerMs;

// Groups 1, 2, ... with the given weights on one device, all with work.
class ShareWorld : public World {
 public:
  explicit ShareWorld(const std::vector<std::uint32_t>& weights, Name name = Name::kShare) : World(1) {
    state.settings.name = name;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Add(i + 1, 0, 0, true).busy_since_ns = kNow;
      state.groups[i].weight = weights[i];
    }
    At(kNow);
  }
  // `ran_ms` of each since the last call.
  Decision After(std::uint64_t ms, const std::vector<double>& ran_ms) {
    now_ns += ms * kMs;
    for (std::size_t i = 0; i < ran_ms.size(); ++i)
      state.tenants[i].ran_ns = static_cast<std::uint64_t>(ran_ms[i] * kMs);
    return At(now_ns);
  }
  void SetBusy(std::size_t tenant, bool busy) {
    state.tenants[tenant].busy = busy;
    (busy ? state.tenants[tenant].busy_since_ns : state.tenants[tenant].idle_since_ns) = now_ns;
  }
  std::uint64_t now_ns = kNow;
};

struct Shares {
  std::vector<double> mean;  // percent of what all used
  double worst_points = 0;   // the greatest distance, in any second, of a group's part from the part due by weight
  double least_used = 1;     // of any second, the part that the device worked
  double decisions_per_s = 0;
};

// Eight seconds of tenants that are one group each, weights in percent.
Shares Simulate(Name name, const std::vector<std::uint32_t>& weights, const std::vector<Load>& loads,
                std::uint32_t concurrent = 0) {
  constexpr std::size_t kSecond = 1'000;  // samples
  State state;
  state.settings.name = name;
  state.devices.push_back({concurrent});
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const bool important = i >= weights.size();
    state.groups.push_back({.id = i + 1, .priority = important ? 50 : 0});
    if (!important) state.groups.back().weight = weights[i];
    state.tenants.push_back({.client = (i + 1) * 100, .group = static_cast<std::uint32_t>(i)});
  }
  ModelDevices model(state, loads, kNow);
  std::vector<std::vector<double>> used;
  model.Run(kNow + 8 * kNsPerS, [&](const ModelDevices& now) {
    used.emplace_back();
    for (std::size_t i = 0; i < loads.size(); ++i)
      used.back().push_back(static_cast<double>(now.UsedNs(i)));
  });
  const auto part = [&](std::size_t from, std::size_t to, std::size_t tenant) {
    double all = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      all += used[to][i] - used[from][i];
    return 100 * (used[to][tenant] - used[from][tenant]) / all;
  };
  Shares shares;
  shares.decisions_per_s = static_cast<double>(model.Decisions()) / 8;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    shares.mean.push_back(part(kSecond, used.size() - 1, i));
    for (std::size_t from = kSecond; from + kSecond < used.size(); ++from)
      shares.worst_points = std::max(shares.worst_points, std::abs(part(from, from + kSecond, i) - weights[i]));
  }
  for (std::size_t from = kSecond; from + kSecond < used.size(); ++from) {
    double all = 0;
    for (std::size_t i = 0; i < loads.size(); ++i)
      all += used[from + kSecond][i] - used[from][i];
    shares.least_used = std::min(shares.least_used, all / static_cast<double>(kNsPerS));
  }
  return shares;
}

}  // namespace

TEST_CASE("share: which groups are kept to a share") {
  CHECK(Letters(ShareWorld({100, 100}).After(1, {})) == "oo");
  CHECK(Letters(ShareWorld({100}).After(1, {})) == "-");
  // priority shares freely until weights differ.
  CHECK(Letters(ShareWorld({100, 100}, Name::kPriority).After(1, {})) == "--");
  CHECK(Letters(ShareWorld({100, 200}, Name::kPriority).After(1, {})) == "oo");
  // Only weights of one class compare, and held ones do not count.
  ShareWorld classes({100, 100, 200}, Name::kPriority);
  classes.state.groups[2].priority = 10;
  classes.state.tenants[2].busy = false;
  classes.After(1, {});
  CHECK(Letters(classes.After(20, {20, 0})) == "ooo");
  ShareWorld held({100, 200}, Name::kPriority);
  held.state.groups[1].hold = true;
  CHECK(Letters(held.After(1, {})) == "-H");
  // For a policy that ranks by another rule, weights mean nothing.
  CHECK(Letters(ShareWorld({100, 200}, Name::kDeadline).After(1, {})) == "--");
}

TEST_CASE("share: a group ahead by more than the slack is held until it is no longer ahead") {
  for (const Name name : {Name::kShare, Name::kPriority}) {
    ShareWorld world({75, 25}, name);
    CHECK(Letters(world.After(5, {0, 5})) == "oo");
    Decision decision = world.After(1, {0, 1});
    CHECK(Letters(decision) == "oH");
    CHECK(decision.gates[1].why == Why::kShare);
    CHECK(decision.gates[1].held_for == 100);
    // 6 ms ahead of one with three times the weight: 18 ms at the earliest.
    CHECK(std::abs(static_cast<double>(decision.next_decision_ns - world.now_ns) - 18e6) < 10);
    CHECK(Letters(world.After(17, {17, 0})) == "oH");
    CHECK(Letters(world.After(1, {1, 0})) == "oo");
  }
}

TEST_CASE("share: equal weights are kept to shares, too, and level groups are left alone") {
  ShareWorld world({100, 100});
  const Decision decision = world.After(10, {5, 5});
  CHECK(Letters(decision) == "oo");
  // No group can be ahead by the slack earlier.
  CHECK(decision.next_decision_ns == world.now_ns + 5 * kMs + 1);
  CHECK(Letters(world.After(6, {0, 6})) == "oH");
}

TEST_CASE("share: only the group ahead is held; the others run side by side") {
  ShareWorld world({50, 30, 20});
  const Decision decision = world.After(20, {5, 3, 12});
  CHECK(Letters(decision) == "ooH");
  CHECK(decision.gates[2].held_for != 0);
}

TEST_CASE("share: no credit for idleness, no debt for what no other group wanted") {
  ShareWorld world({100, 100});
  world.SetBusy(1, false);
  world.After(1, {1, 0});
  world.After(1000, {1000, 0});
  world.SetBusy(1, true);
  Decision decision = world.After(0, {});
  CHECK(Letters(decision) == "oo");
  CHECK(world.state.groups[0].memory.share.virtual_ns == world.state.groups[1].memory.share.virtual_ns);
  SECTION("both were away") {
    world.SetBusy(0, false);
    world.SetBusy(1, false);
    world.After(1000, {});
    world.SetBusy(0, true);
    world.After(100, {});
    world.SetBusy(1, true);
    CHECK(Letters(world.After(4, {4, 0})) == "oo");
  }
  SECTION("a pause shorter than the slack changes nothing") {
    CHECK(Letters(world.After(6, {6, 0})) == "Ho");
    world.SetBusy(1, false);
    world.After(1, {0, 1});
    CHECK(Letters(world.After(2, {})) == "oo");
    world.SetBusy(1, true);
    CHECK(Letters(world.After(1, {1, 0})) == "Ho");
  }
}

TEST_CASE("share: a group ahead does not slip in by being idle for a moment") {
  ShareWorld world({100, 100});
  CHECK(Letters(world.After(6, {6, 0})) == "Ho");
  world.SetBusy(0, false);
  Decision decision = world.After(1, {0, 1});
  CHECK(Letters(decision) == "Ho");
  CHECK(decision.gates[0].why == Why::kShare);
  CHECK(decision.next_decision_ns <= world.now_ns + 5 * kMs + 1);
  CHECK(Letters(world.After(6, {0, 6})) == "oo");
}

TEST_CASE("share: a group that does not use the device does not hold the others for ever") {
  ShareWorld world({50, 25, 25});
  std::uint64_t held_ms = 0;
  Decision decision = world.After(1, {});
  for (int ms = 0; ms < 4000; ++ms) {
    const bool open = !decision.gates[2].held;
    held_ms += open ? 0 : 1;
    decision = world.After(1, {0, 0, open ? 1.0 : 0.0});
  }
  // Its own quarter, what the guard adds, and the wait at the beginning.
  CHECK(held_ms < 4000 * 3 / 4 + 100);
}

TEST_CASE("share: late measurements are not charged twice") {
  ShareWorld world({100, 100});
  CHECK(Letters(world.After(10, {10, 0})) == "Ho");
  // The second runs for 20 ms, and reports it only afterwards.
  for (int i = 0; i < 20; ++i)
    world.After(1, {});
  world.After(1, {0, 20});
  const double lead =
      (world.state.groups[1].memory.share.virtual_ns - world.state.groups[0].memory.share.virtual_ns) * 100;
  CHECK(std::abs(lead - 10.0 * kMs) < 1);
}

TEST_CASE("share: a class that runs in the gaps of another keeps its shares from gap to gap") {
  ShareWorld world({100, 100});
  world.Add(9, 50, 0, false);
  world.After(1, {});
  for (int gap = 0; gap < 3; ++gap) {
    world.SetBusy(2, true);
    CHECK(Letters(world.After(100, {})) == "HHo");
    world.SetBusy(2, false);
    world.After(0, {});
    world.After(2, {2, 0});
  }
  CHECK(Letters(world.At(world.now_ns)) == "Hoo");
}

TEST_CASE("share: being held elsewhere gives no more credit than the slack") {
  World world(2);
  world.state.settings.name = Name::kShare;
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(2, 0, 1, true);
  world.Add(3, 50, 1, true);
  CHECK(Letters(world.At(kNow)) == "oHHo");
  world.state.tenants[0].ran_ns = 100 * kMs;
  CHECK(Letters(world.At(kNow + 100 * kMs)) == "oHHo");
  world.state.tenants[3].busy = false;
  CHECK(Letters(world.At(kNow + 101 * kMs)) == "oooo");
  world.state.tenants[0].ran_ns = kMs;
  CHECK(Letters(world.At(kNow + 102 * kMs)) == "Hooo");
}

TEST_CASE("share: a lead from a device without the other counts for at most 500 ms") {
  World world(2);
  world.state.settings.name = Name::kShare;
  world.state.settings.guard_ms_per_s = 0;
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(2, 0, 1, false);
  world.Add(3, 0, 1, true);
  world.At(kNow);
  for (int second = 1; second <= 10; ++second) {
    world.state.tenants[0].ran_ns = 500 * kMs;
    world.state.tenants[1].ran_ns = 500 * kMs;
    world.state.tenants[3].ran_ns = 1000 * kMs;
    CHECK(Letters(world.At(kNow + static_cast<std::uint64_t>(second) * kNsPerS)).substr(0, 2) == "oo");
  }
  world.state.tenants[2].busy = true;
  CHECK(Letters(world.At(kNow + 10 * kNsPerS + kMs)) == "oooH");
  world.state.tenants[0].ran_ns = 499 * kMs;
  world.state.tenants[2].ran_ns = 499 * kMs;
  CHECK(Letters(world.At(kNow + 10 * kNsPerS + 500 * kMs)) == "oooH");
  world.state.tenants[0].ran_ns = kMs;
  world.state.tenants[2].ran_ns = kMs;
  CHECK(Letters(world.At(kNow + 10 * kNsPerS + 501 * kMs)) == "oooo");
}

TEST_CASE("share: windows") {
  ShareWorld world({75, 25});
  Decision decision = world.After(1, {});
  CHECK(decision.gates[0].window_us == 2'500);
  CHECK(decision.gates[1].window_us == 2'500);
  CHECK(decision.gates[0].window_floor == 2);
  // No group may have more in flight than its remaining slack.
  decision = world.After(4, {0, 4});
  CHECK(decision.gates[1].window_us < 1'300);
  CHECK(decision.gates[1].window_us >= 250);
  CHECK(decision.gates[0].window_us == 2'500);
  // Alone for long.
  world.SetBusy(0, false);
  world.After(1, {});
  decision = world.After(10, {0, 10});
  CHECK(decision.gates[1].window_us == 5'000);
  CHECK(decision.gates[1].window_floor == 4);
  // Below a more important group: as for all in the background.
  world.SetBusy(0, true);
  world.Add(3, 50, 0, false);
  decision = world.After(1, {});
  CHECK(decision.gates[0].window_us == 250);
  CHECK(decision.gates[1].window_us == 250);
}

TEST_CASE("share: turns go to the group furthest behind") {
  World world(1, 1);
  world.state.settings.name = Name::kShare;
  world.Add(1, 50, 0, false);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true);
  CHECK(Letters(world.At(kNow)) == "ooH");
  world.state.tenants[1].ran_ns = 4 * kMs;
  CHECK(Letters(world.At(kNow + 4 * kMs)) == "ooH");
  world.state.tenants[1].ran_ns = 2 * kMs;
  const Decision decision = world.At(kNow + 6 * kMs);
  CHECK(Letters(decision) == "oHo");
  CHECK(decision.gates[1].held_for == 300);
  // It has given back its turn, and gets the next when the other is ahead by the slack.
  world.state.tenants[2].ran_ns = 8 * kMs;
  CHECK(Letters(world.At(kNow + 14 * kMs)) == "oHo");
  world.state.tenants[2].ran_ns = 4 * kMs;
  CHECK(Letters(world.At(kNow + 18 * kMs)) == "ooH");
}

TEST_CASE("share: of two gangs that need the same devices, one has all of them") {
  World world(2);
  world.state.settings.name = Name::kShare;
  for (const std::uint64_t group : {1, 2})
    for (const std::uint32_t device : {0, 1})
      world.Add(group, 0, device, true);
  world.At(kNow);
  // Each is ahead on one device: the busiest device of each is compared.
  world.state.tenants[0].ran_ns = 10 * kMs;
  world.state.tenants[3].ran_ns = 16 * kMs;
  const Decision decision = world.At(kNow + 16 * kMs);
  CHECK(Letters(decision) == "ooHH");
  CHECK(decision.gates[2].why == Why::kShare);
}

TEST_CASE("share: a live change of weight acts at once") {
  ShareWorld world({100, 100});
  CHECK(Letters(world.After(4, {0, 4})) == "oo");
  world.state.groups[1].weight = 200;
  CHECK(Letters(world.After(1, {0, 1})) == "oH");
}

TEST_CASE("share: on a device with a limit, sharers take turns even with no group above them") {
  World world(1, 1);
  world.state.settings.name = Name::kShare;
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  const Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "oH");
  CHECK(decision.gates[1].why == Why::kTurn);
  CHECK(decision.gates[1].held_for == 100);
  world.state.settings.max_concurrent = 0;
  CHECK(Letters(world.At(kNow)) == "oo");

  const Load quick{.kernel_ns = 100 * kUs};
  const Load slow{.kernel_ns = 1'200 * kUs};
  const Shares shares = Simulate(Name::kShare, {75, 25}, {quick, slow}, 1);
  INFO("worst second " << shares.worst_points << " points, used " << shares.least_used);
  CHECK(shares.worst_points < 3);  // half of turn_ms; with all of it there are 5
  CHECK(shares.least_used > 0.98);
}

namespace {

// The percentage of one device that each group with endless work had in eight seconds; `loads` is by group.
std::vector<double> PartsOf(const std::vector<std::uint32_t>& owners, const std::vector<std::uint32_t>& weights,
                            const std::vector<Load>& loads, std::uint32_t concurrent) {
  State state;
  state.settings.name = Name::kShare;
  state.devices.push_back({concurrent});
  for (std::size_t i = 0; i < owners.size(); ++i) {
    state.groups.push_back({.id = i + 1, .owner = owners[i], .weight = weights[i]});
    state.tenants.push_back({.client = (i + 1) * 100, .group = static_cast<std::uint32_t>(i)});
  }
  ModelDevices model(state, loads, kNow);
  model.Run(kNow + 8 * kNsPerS, [](const ModelDevices&) {});
  double all = 0;
  std::vector<double> parts;
  for (std::size_t i = 0; i < owners.size(); ++i)
    all += static_cast<double>(model.UsedNs(i));
  for (std::size_t i = 0; i < owners.size(); ++i)
    parts.push_back(100 * static_cast<double>(model.UsedNs(i)) / all);
  return parts;
}

}  // namespace

TEST_CASE("share: owners first, then the groups of each") {
  struct {
    std::vector<std::uint32_t> owners;
    std::vector<std::uint32_t> weights;
    std::vector<double> expected;
  } const rows[] = {
      {{0, 0, 1}, {100, 100, 100}, {25, 25, 50}},
      {{0, 0, 0, 0, 1}, {100, 100, 100, 100, 100}, {12.5, 12.5, 12.5, 12.5, 50}},
      // An owner's weight is the greatest of its groups'.
      {{0, 0, 1}, {300, 100, 100}, {56.25, 18.75, 25}},
      {{0, 0, 1}, {50, 50, 100}, {16.7, 16.7, 66.7}},
      {{0, 0, 1, kNoOwner}, {100, 100, 100, 100}, {16.7, 16.7, 33.3, 33.3}},
      // With one owner, or none, weights alone decide.
      {{0, 0, 0}, {100, 100, 200}, {25, 25, 50}},
      {{kNoOwner, kNoOwner, kNoOwner}, {100, 100, 200}, {25, 25, 50}},
  };
  for (const std::uint32_t concurrent : {0u, 1u}) {
    for (const auto& row : rows) {
      std::vector<Load> loads(row.owners.size(), {.kernel_ns = 100 * kUs});
      loads.back().kernel_ns = 1'200 * kUs;
      const std::vector<double> parts = PartsOf(row.owners, row.weights, loads, concurrent);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        INFO("row " << &row - rows << " group " << i << " has " << parts[i] << " %, limit " << concurrent);
        CHECK(std::abs(parts[i] - row.expected[i]) < 1.5);
      }
    }
  }
}

TEST_CASE("share: every owner has the same part, and every group of it, however many there are", "[properties]") {
  for (std::uint32_t seed = 1; seed <= Seeds(40); ++seed) {
    std::mt19937 random(seed);
    const auto owners = static_cast<std::uint32_t>(2 + random() % 3);
    std::vector<std::uint32_t> of;
    std::vector<Load> loads;
    std::vector<double> groups(owners);
    for (std::uint32_t owner = 0; owner < owners; ++owner) {
      for (auto left = 1 + random() % 4; left > 0; --left) {
        of.push_back(owner);
        loads.push_back({.kernel_ns = (100 + random() % 900) * kUs});
        ++groups[owner];
      }
    }
    const std::vector<double> parts = PartsOf(of, std::vector<std::uint32_t>(of.size(), 100), loads, random() % 2);
    for (std::size_t i = 0; i < of.size(); ++i) {
      const double due = 100.0 / owners / groups[of[i]];
      INFO("seed " << seed << " group " << i << " of owner " << of[i] << ": " << parts[i] << " %, due " << due);
      CHECK(std::abs(parts[i] - due) < 2);
    }
  }
}

TEST_CASE("share: a second process that seldom works neither costs its owner its part nor gives it much more") {
  const std::vector<std::uint32_t> owners{0, 0, 1};
  const Load endless{.kernel_ns = 100 * kUs};
  for (const std::uint64_t pause_us : {300, 2'000, 20'000}) {
    const Load seldom{.kernel_ns = 100 * kUs, .burst = 5, .pause_ns = pause_us * kUs};
    const auto parts = PartsOf(owners, {100, 100, 100}, {endless, seldom, endless}, 0);
    INFO("pauses of " << pause_us << " us: " << parts[0] << " + " << parts[1] << " beside " << parts[2]);
    CHECK(parts[2] > 40);
    CHECK(parts[2] < 53);
  }
}

TEST_CASE("share: ratios over any second, on a device that is always busy") {
  const std::vector<std::uint32_t> two{75, 25};
  const std::vector<std::uint32_t> three{50, 30, 20};
  const Load quick{.kernel_ns = 100 * kUs};
  const Load slow{.kernel_ns = 1'200 * kUs};
  const auto lumpy = [](Load load) {
    load.lump_ns = 3 * kMs;
    load.late_ns = 2 * kMs;
    return load;
  };
  const auto stepping = [](Load load, std::uint32_t kernels, std::uint64_t pause_ns) {
    load.burst = kernels;
    load.pause_ns = pause_ns;
    return load;
  };
  struct {
    const char* name;
    const std::vector<std::uint32_t>& weights;
    std::vector<Load> loads;
    double used = 0.98;
    double points = 2;
  } const cases[] = {
      {"equal kernels", two, {quick, quick}},
      {"the lighter has the longer kernels", two, {quick, slow}},
      {"the heavier has the longer kernels", two, {slow, quick}},
      {"measured late and in lumps", two, {lumpy(quick), lumpy(slow)}},
      {"measured late and in lumps, the other way", two, {lumpy(slow), lumpy(quick)}},
      {"three", three, {quick, {.kernel_ns = 300 * kUs}, slow}},
      {"three, late and in lumps", three, {lumpy(quick), lumpy({.kernel_ns = 300 * kUs}), lumpy(slow)}},
      {"long beside short", two, {{.kernel_ns = 50 * kMs}, {.kernel_ns = kMs}}, 0.95},
      {"they synchronise after each step", two, {stepping(quick, 20, 40 * kUs), stepping(slow, 3, 300 * kUs)}, 0.95},
      // A group that pauses cannot have its whole share: the other's kernels still run when it returns.
      {"one pauses", two, {stepping(quick, 50, kMs), stepping(slow, 5, 300 * kUs)}, 0.95, 15},
      {"in the gaps of one more important", two, {quick, slow, stepping(quick, 100, 40 * kMs)}},
  };
  for (const Name name : {Name::kShare, Name::kPriority}) {
    for (const auto& row : cases) {
      INFO(Text(name) << ": " << row.name);
      const Shares shares = Simulate(name, row.weights, row.loads);
      std::string means;
      for (const double mean : shares.mean)
        means += std::to_string(mean) + " % ";
      INFO(means << "worst second " << shares.worst_points << " points, used " << shares.least_used << ", "
                 << shares.decisions_per_s << " decisions/s");
      CHECK(shares.worst_points < row.points);
      CHECK(shares.least_used > row.used);
      CHECK(shares.decisions_per_s < 2'500);
    }
  }
}
