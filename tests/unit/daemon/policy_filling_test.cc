// How many groups have their turn at a time, and which join: loops on a modelled device, below an important program
// that holds them.
#include <cmath>
#include <random>
#include <vector>

#include "daemon/policy/filling.h"
#include "tests/unit/daemon/policy_world.h"

namespace xschedd::policy {
namespace {

using namespace test;

struct Work {
  // Of each loop: the part of the device that it uses while it has the device to itself.
  std::vector<double> loops;
  double request_ms = 10;  // of the important program
  double pause_ms = 10;
  double switches = 0.1;  // the part of the device that is lost while several loops run side by side
  double noise = 0.1;     // standard deviation of what a loop launches between two decisions
  std::size_t lower = 0;  // how many of the loops, the last ones, are less important than the others
  // Of each loop, its speed beside each of the loops, and beside several the least. Empty: as the device allows.
  std::vector<std::vector<double>> beside = {};
  double lies = 1;  // so many times as many launches the first loop says that it makes beside others
};

// Each of three beside any other.
std::vector<std::vector<double>> AllBeside(double speed) {
  return {{1, speed, speed}, {speed, 1, speed}, {speed, speed, 1}};
}

// Loops that always have work, below a program with requests that others beside it slow down. Virtual time.
class LoopsBelow {
 public:
  explicit LoopsBelow(const Work& work, std::uint32_t seed = 1) : work_(work), random_(seed), world_(1, 1) {
    world_.state.settings.tolerance_percent = 5;
    world_.state.settings.guard_ms_per_s = 10;
    world_.state.settings.linger_us = 200;
    world_.Add(1, 10, 0, false);
    for (std::size_t i = 0; i < work.loops.size(); ++i)
      world_.Add(2 + i, i + work.lower < work.loops.size() ? 0 : -10, 0, true);
    Decide();
  }

  void Run(double seconds) {
    const auto end_ns = now_ns_ + static_cast<std::uint64_t>(seconds * kNsPerS);
    while (now_ns_ < end_ns) {
      const std::uint64_t next_ns = std::min({decision_.next_decision_ns, important_ns_, end_ns});
      Progress(next_ns - now_ns_);
      now_ns_ = next_ns;
      if (now_ns_ == important_ns_) Turn();
      Decide();
    }
  }

  State& Of() { return world_.state; }
  bool Joins(std::size_t loop) const { return world_.state.groups[1 + loop].memory.joins; }
  // What it made since ForgetTimes, of what it would have made alone.
  double RateOf(std::size_t loop) const { return progress_ms_[loop] * 1e6 / static_cast<double>(open_ns_); }
  void SetBeside(const std::vector<std::vector<double>>& beside) { work_.beside = beside; }
  void SetLoops(const std::vector<double>& loops) { work_.loops = loops; }
  std::uint32_t Settled() const { return world_.state.devices[0].memory.filling.settled; }
  std::uint32_t Changes() const { return changes_; }
  // Of the time in which several loops had work and were not held for the important one: in a trial that was not kept.
  double TrialPart() const {
    return competing_ns_ == 0 ? 0 : static_cast<double>(trial_ns_) / static_cast<double>(competing_ns_);
  }
  void ForgetTimes() {
    competing_ns_ = trial_ns_ = open_ns_ = 0;
    progress_ms_.assign(work_.loops.size(), 0);
  }

 private:
  // The important program begins or ends a request.
  void Turn() {
    Tenant& important = world_.state.tenants[0];
    important.busy = !important.busy;
    (important.busy ? important.busy_since_ns : important.idle_since_ns) = now_ns_;
    important_ns_ = now_ns_ + static_cast<std::uint64_t>((important.busy ? work_.request_ms : work_.pause_ms) * 1e6);
  }

  bool IsOpen(std::size_t loop) const { return !decision_.gates[1 + loop].held; }

  void Progress(std::uint64_t passed_ns) {
    const double passed_ms = static_cast<double>(passed_ns) / 1e6;
    double demand = 0;
    std::size_t open = 0;
    for (std::size_t i = 0; i < work_.loops.size(); ++i) {
      if (!IsOpen(i)) continue;
      demand += work_.loops[i];
      ++open;
    }
    const double capacity = open > 1 ? 1 - work_.switches : 1;
    const double speed = demand > capacity ? capacity / demand : 1;
    for (std::size_t i = 0; i < work_.loops.size(); ++i) {
      if (!IsOpen(i)) continue;
      const double own = work_.beside.empty() ? speed : SpeedBesideOthers(i);
      progress_ms_[i] += passed_ms * own;
      const double says = i == 0 && open > 1 ? work_.lies : 1;
      made_[i] += 20 * passed_ms * own * says * std::exp(work_.noise * normal_(random_));
      const double whole = std::floor(made_[i]);
      made_[i] -= whole;
      world_.state.tenants[1 + i].launched = static_cast<std::uint64_t>(whole);
    }
    if (world_.state.tenants[0].busy)
      world_.state.tenants[0].launched = static_cast<std::uint64_t>(10 * passed_ms * (open == 0 ? 1 : 0.6));
    if (open == 0) return;
    open_ns_ += passed_ns;
    const FillingMemory& filling = world_.state.devices[0].memory.filling;
    competing_ns_ += passed_ns;
    if (filling.place != 0 && filling.is_trial) trial_ns_ += passed_ns;
  }

  double SpeedBesideOthers(std::size_t loop) const {
    double speed = 1;
    std::size_t others = 0;
    for (std::size_t i = 0; i < work_.loops.size(); ++i)
      if (i != loop && IsOpen(i))
        speed = others++ == 0 ? work_.beside[loop][i] : std::min(speed, work_.beside[loop][i]);
    return speed;
  }

  void Decide() {
    const std::uint32_t before = Settled();
    decision_ = world_.At(now_ns_);
    if (Settled() != before) ++changes_;
  }

  Work work_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  World world_;
  Decision decision_;
  std::uint64_t now_ns_ = kNow;
  std::uint64_t important_ns_ = kNow + kNsPerMs;
  std::vector<double> made_ = std::vector<double>(16);
  std::vector<double> progress_ms_ = std::vector<double>(16);
  std::uint64_t open_ns_ = 0;
  std::uint32_t changes_ = 0;
  std::uint64_t competing_ns_ = 0;
  std::uint64_t trial_ns_ = 0;
};

}  // namespace

TEST_CASE("filling: as few groups at a time as fill the device") {
  struct Row {
    const char* name;
    Work work;
    std::uint32_t settled;
  };
  const Row rows[] = {
      {"two that leave most of it idle", {{0.4, 0.4}}, 2},
      {"two that fill it", {{1, 1}}, 1},
      {"two that nearly fill it", {{0.9, 0.9}}, 1},
      {"three, of which two fill it", {{0.5, 0.5, 0.5}}, 2},
      {"five small ones below long requests", {{0.15, 0.15, 0.15, 0.15, 0.15}, 40, 40}, 5},
      {"five small ones below requests that one more delays by 4 %", {{0.15, 0.15, 0.15, 0.15, 0.15}, 5}, 2},
      {"two that leave it idle, below requests that one more would delay by a tenth", {{0.4, 0.4}, 2}, 1},
      {"one that fills it and one that does not", {{1, 0.3}}, 2},
      {"one", {{0.4}}, 1},
      {"three, of which one gains at the cost of another",
       {.loops = {1, 1, 1}, .beside = {{1, 1.04, 1.04}, {0.62, 1, 0.62}, {0.31, 0.31, 1}}},
       1},
      {"three, of which one gains less",
       {.loops = {1, 1, 1}, .beside = {{1, 0.9, 0.9}, {0.75, 1, 0.75}, {0.5, 0.5, 1}}},
       3},
      {"two above two more, which they try beside them now and then", {.loops = {0.4, 0.4, 0.4, 0.4}, .lower = 2}, 2},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    for (std::uint32_t seed = 1; seed <= Seeds(20); ++seed) {
      INFO("seed " << seed);
      LoopsBelow device(row.work, seed);
      device.Run(90);
      CHECK(device.Settled() == row.settled);
    }
  }
}

TEST_CASE("filling: who needs what others do not use joins their turns") {
  // Copies, long kernels and graph networks, as follows from docs/results/h200-levers-e82226ac-dirty-aside.md.
  const std::vector<std::vector<double>> copies = {{1, 1, 1}, {0.77, 1, 0.95}, {0.55, 0.05, 1}};
  const std::vector<std::vector<double>> both_copy = {
      {1, 1, 1, 1}, {1, 1, 1, 1}, {0.9, 0.9, 1, 0.95}, {0.9, 0.9, 0.05, 1}};
  struct Row {
    const char* name;
    Work work;
    std::vector<bool> join;
    std::vector<double> least;  // RateOf
  };
  const Row rows[] = {
      {"one that copies", {.loops = {1, 1, 1}, .beside = copies}, {true, false, false}, {0.9, 0.35, 0.24}},
      {"below requests that one more would delay by a tenth",
       {.loops = {1, 1, 1}, .request_ms = 2, .beside = copies},
       {false, false, false},
       {0.3, 0.3, 0.3}},
      {"three that compute",
       {.loops = {1, 1, 1}, .beside = AllBeside(0.45)},
       {false, false, false},
       {0.29, 0.29, 0.29}},
      {"two that copy, with which three have the device at a time",
       {.loops = {1, 1, 1, 1}, .beside = both_copy},
       {},
       {0.55, 0.55, 0.35, 0.2}},
      {"one of two", {.loops = {1, 1}, .beside = copies}, {false, false}, {0.9, 0.7}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      INFO("seed " << seed);
      LoopsBelow device(row.work, seed);
      device.Run(120);
      device.ForgetTimes();
      device.Run(60);
      for (std::size_t i = 0; i < row.work.loops.size(); ++i) {
        INFO("loop " << i);
        if (!row.join.empty()) CHECK(device.Joins(i) == row.join[i]);
        CHECK(device.RateOf(i) >= row.least[i]);
      }
    }
  }
}

TEST_CASE("filling: who lies about its launches has no more of the device than one turn of three") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    LoopsBelow device({.loops = {1, 1, 1}, .beside = AllBeside(0.25), .lies = 100}, seed);
    device.Run(120);
    device.ForgetTimes();
    device.Run(60);
    CHECK(!device.Joins(0));
    CHECK(device.Settled() == 1);
    for (std::size_t i = 1; i < 3; ++i)
      CHECK(device.RateOf(i) > 0.29);
  }
}

TEST_CASE("filling: who joins has its own turns again once it computes, also where no other may join") {
  LoopsBelow device({.loops = {1, 1, 1}, .request_ms = 5, .beside = {{1, 0.05, 0.55}, {0.95, 1, 0.77}, {1, 1, 1}}});
  device.Run(120);
  REQUIRE(device.Joins(2));
  device.SetBeside(AllBeside(0.45));
  device.Run(300);
  CHECK(!device.Joins(2));
}

TEST_CASE("filling: at most once in a few seconds something else, and trials become rare") {
  for (const double noise : {0.1, 0.5}) {
    for (std::uint32_t seed = 1; seed <= Seeds(20); ++seed) {
      INFO("noise " << noise << ", seed " << seed);
      LoopsBelow fills({.loops = {1, 1}, .noise = noise}, seed);
      fills.Run(300);
      CHECK(fills.TrialPart() < 0.1);
      fills.ForgetTimes();
      fills.Run(600);
      CHECK(fills.TrialPart() < 0.04);
      CHECK(fills.Settled() == 1);
      CHECK(fills.Changes() <= 2);
    }
  }
}

TEST_CASE("filling: what is known is given up once the groups have changed") {
  LoopsBelow device({.loops = {0.4, 0.4}});
  device.Run(60);
  REQUIRE(device.Settled() == 2);
  device.SetLoops({1, 1});
  device.Run(120);
  CHECK(device.Settled() == 1);
  device.SetLoops({0.4, 0.4});
  device.Run(200);
  CHECK(device.Settled() == 2);
}

TEST_CASE("filling: fewer groups than have their turn at a time are tried one at a time, too") {
  LoopsBelow device({.loops = {0.3, 0.3, 0.3}, .request_ms = 40, .pause_ms = 40});
  device.Run(120);
  REQUIRE(device.Settled() == 3);
  device.Of().tenants[3].busy = false;
  device.Of().tenants[3].idle_since_ns = 1;
  device.SetLoops({1, 1, 0});
  device.Run(120);
  CHECK(device.Settled() == 1);
}

TEST_CASE("filling: groups that come back find the number that was in force for them") {
  LoopsBelow device({.loops = {0.4, 0.4}});
  device.Run(60);
  REQUIRE(device.Settled() == 2);
  CHECK(device.Of().devices[0].memory.filling.gain_of == 2);
  Tenant& away = device.Of().tenants[2];
  away.busy = false;
  away.idle_since_ns = 1;
  device.Run(5);
  CHECK(device.Settled() == 1);
  CHECK(device.Of().devices[0].memory.filling.gain_of == 0);
  away.busy = true;
  device.Run(3);
  CHECK(device.Settled() == 2);
}

TEST_CASE("filling: only where the number is left to the daemon and the important program tolerates it") {
  const Work work{.loops = {0.4, 0.4}};
  LoopsBelow device(work);
  SECTION("a number is set") {
    device.Of().settings.max_concurrent = 1;
  }
  SECTION("others are always held") {
    device.Of().settings.tolerance_percent = 0;
  }
  SECTION("a strict group") {
    device.Of().groups[0].strict = true;
  }
  SECTION("equals are kept to shares") {
    device.Of().groups[1].weight = 3 * kWeightDefault;
  }
  SECTION("another policy") {
    device.Of().settings.name = Name::kFair;
  }
  device.Run(60);
  CHECK(device.Settled() == 1);
  CHECK(device.TrialPart() == 0);
}

TEST_CASE("filling: shorter requests leave one at a time, and longer ones bring back what is known") {
  LoopsBelow device({.loops = {0.4, 0.4}});
  device.Run(60);
  REQUIRE(device.Settled() == 2);
  const auto at_a_time = [&] {  // outside trials
    const FillingMemory& filling = device.Of().devices[0].memory.filling;
    return std::min(filling.settled, filling.most);
  };
  CHECK(at_a_time() == 2);
  device.Of().settings.tolerance_percent = 1;
  device.Run(5);
  CHECK(at_a_time() == 1);
  device.Of().settings.tolerance_percent = 5;
  device.Run(5);
  CHECK(at_a_time() == 2);
}

TEST_CASE("filling: how many at a time requests of a length tolerate") {
  CHECK(Filling::MostAtATime(5, 0) == 1);
  CHECK(Filling::MostAtATime(5, 3'999'999) == 1);
  CHECK(Filling::MostAtATime(5, 4'000'000) == 2);
  CHECK(Filling::MostAtATime(5, 10'000'000) == 3);
  CHECK(Filling::MostAtATime(5, kNever) == Filling::kMostAtATime);
  CHECK(Filling::MostAtATime(0, kNever) == 1);
}

TEST_CASE("filling: short slices only while one at a time has its turn") {
  LoopsBelow device({.loops = {0.4, 0.4}});
  const auto slices = [&] {
    const Decision decision = Decide(device.Of(), kNow + 3600 * kNsPerS);
    return std::vector{decision.gates[1].slice_us, decision.gates[2].slice_us};
  };
  device.Run(0.5);
  CHECK(slices() == std::vector{200u, 200u});
  device.Run(60);
  for (int i = 0; i < 100 && device.Of().devices[0].memory.filling.number != 2; ++i)
    device.Run(0.1);
  CHECK(slices() == std::vector{0u, 0u});
}

}  // namespace xschedd::policy
