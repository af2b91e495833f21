// What a decision costs. Asserts nothing and runs only when named: unit_policy "[cost]".
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "daemon/policy/decide.h"
#include "tests/catch.h"

using namespace xschedd::policy;

namespace {

// One device, one client a group; who is busy changes with every decision, as it does in the daemon.
State Crowd(Name name, std::uint32_t tenants, int classes, bool weights) {
  State state;
  state.settings.name = name;
  state.devices.resize(1);
  for (std::uint32_t i = 0; i < tenants; ++i) {
    Group group{.id = i + 1, .priority = static_cast<int>(i) % classes * 10};
    if (weights) group.weight = 50 + i % 4 * 50;
    state.groups.push_back(group);
    state.tenants.push_back({.client = i + 1, .group = i, .busy = i % 2 == 0, .busy_since_ns = kNsPerS});
    if (i % 3 == 0) state.tenants.back().deadline_after_ns = (10 + i) * kNsPerMs;
  }
  return state;
}

std::uint64_t ThreadNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerS + static_cast<std::uint64_t>(time.tv_nsec);
}

// Processor time of the best of many rounds: others use the machine, too.
double NsPerDecision(State state) {
  constexpr int kRounds = 100;
  constexpr int kDecisions = 100;
  Decider decider;
  std::uint64_t now = 2 * kNsPerS;
  std::uint64_t best = kNever;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t start = ThreadNs();
    for (int i = 0; i < kDecisions; ++i) {
      now += 10 * kNsPerUs;
      Tenant& tenant = state.tenants[static_cast<std::size_t>(i) * 7 % state.tenants.size()];
      tenant.busy = !tenant.busy;
      (tenant.busy ? tenant.busy_since_ns : tenant.idle_since_ns) = now;
      tenant.deadline_ns = tenant.busy && tenant.deadline_after_ns != 0 ? now + tenant.deadline_after_ns : 0;
      tenant.ran_ns = 5 * kNsPerUs;
      const Decision& decision = decider.Decide(state, now);
      tenant.ran_ns = 0;
      for (std::size_t g = 0; g < state.groups.size(); ++g)
        state.groups[g].memory = decision.memory[g];
    }
    best = std::min(best, ThreadNs() - start);
  }
  return static_cast<double>(best) / kDecisions;
}

}  // namespace

TEST_CASE("what a decision costs", "[.cost]") {
  std::printf("%-10s %10s %14s %14s\n", "policy", "tenants", "ns, 1 class", "ns, 3 classes");
  for (const std::string_view name : kNames) {
    for (const std::uint32_t tenants : {8u, 125u, 500u}) {
      const Name policy = *NameFrom(name);
      std::printf("%-10s %10u %14.0f %14.0f\n", std::string(name).c_str(), tenants,
                  NsPerDecision(Crowd(policy, tenants, 1, false)), NsPerDecision(Crowd(policy, tenants, 3, false)));
    }
  }
  std::printf("%-10s %10u %14.0f %14.0f\n", "+ weights", 125u, NsPerDecision(Crowd(Name::kPriority, 125, 1, true)),
              NsPerDecision(Crowd(Name::kPriority, 125, 3, true)));
  SUCCEED();
}
