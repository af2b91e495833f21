// Tables of states and decisions: one client on one device a row. Pure, so time is a number here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/policy/decide.h"
#include "tests/catch.h"

namespace xschedd::policy::test {

inline constexpr std::uint64_t kNow = 1'000 * kNsPerS;

// Client ids are group * 100 + device, so that a table is readable.
struct Row {
  std::uint64_t group;
  int priority;
  std::uint32_t device;
  bool busy;
  // Expected: '-' untracked, 'o' open and tracked, 'H' held.
  char expected;
  Why why = Why::kOpen;
  bool hold = false;
};

class World {
 public:
  explicit World(std::uint32_t devices, std::uint32_t default_concurrent = 0) {
    state.devices.assign(devices, {.default_max_concurrent = default_concurrent});
    state.settings.linger_us = 0;
    state.settings.tolerance_percent = 0;  // policy_benefit_test.cc
  }

  Group& GroupOf(std::uint64_t id, int priority) {
    for (Group& group : state.groups)
      if (group.id == id) return group;
    return state.groups.emplace_back(Group{.id = id, .priority = priority});
  }

  Tenant& Add(std::uint64_t group, int priority, std::uint32_t device, bool busy, bool hold = false) {
    Group& owner = GroupOf(group, priority);
    owner.hold = owner.hold || hold;
    return state.tenants.emplace_back(Tenant{.client = group * 100 + device,
                                             .group = static_cast<std::uint32_t>(&owner - state.groups.data()),
                                             .device = device,
                                             .busy = busy});
  }

  // Decides, and keeps the memory for the next time.
  Decision At(std::uint64_t now) {
    Decision decision = decider_.Decide(state, now);
    REQUIRE(decision.gates.size() == state.tenants.size());
    REQUIRE(decision.memory.size() == state.groups.size());
    for (std::size_t i = 0; i < state.groups.size(); ++i)
      state.groups[i].memory = decision.memory[i];
    REQUIRE(decision.devices.size() == state.devices.size());
    for (std::size_t i = 0; i < state.devices.size(); ++i)
      state.devices[i].memory = decision.devices[i];
    for (Tenant& tenant : state.tenants)
      tenant.ran_ns = tenant.launched = 0;
    CHECK(decision.next_look_ns > now);
    return decision;
  }

  State state;

 private:
  Decider decider_;
};

inline char Letter(const Gate& gate) {
  return gate.held ? 'H' : gate.tracked ? 'o' : '-';
}

inline std::string Letters(const Decision& decision) {
  std::string letters;
  for (const Gate& gate : decision.gates)
    letters += Letter(gate);
  return letters;
}

// Under the default settings but for linger.
inline void Check(const char* name, const std::vector<Row>& rows, std::uint32_t default_concurrent = 0) {
  INFO(name);
  World world(4, default_concurrent);
  for (const Row& row : rows)
    world.Add(row.group, row.priority, row.device, row.busy, row.hold);
  const Decision decision = world.At(kNow);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    CHECK(std::string(1, Letter(decision.gates[i])) == std::string(1, rows[i].expected));
    CHECK(static_cast<int>(decision.gates[i].why) == static_cast<int>(rows[i].why));
  }
}

}  // namespace xschedd::policy::test
