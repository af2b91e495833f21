// Tables of states and decisions: each row is one client on one device. Pure: time is a number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/policy/decide.h"
#include "tests/catch.h"
#include "tests/unit/daemon/policy_memory.h"

namespace xschedd::policy::test {

inline constexpr std::uint64_t kNow = 1'000 * kNsPerS;

// The number of random runs, `usual` by default. XSCHEDD_POLICY_SEEDS replaces each 200 of them: by more to find rare
// failures, by fewer under sanitizers or for coverage.
inline std::uint32_t Seeds(std::uint32_t usual) {
  const char* text = std::getenv("XSCHEDD_POLICY_SEEDS");
  if (text == nullptr) return usual;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) * usual / 200);
}

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

  // Decides, and keeps the memory for the next decision. As for the daemon, an untracked client's work is unknown;
  // when it becomes tracked, there is another decision at once.
  Decision At(std::uint64_t now) {
    Decision decision = DecideBy(now);
    for (bool learnt = true; learnt;) {
      learnt = false;
      for (std::size_t i = 0; i < state.tenants.size(); ++i) {
        const bool was_tracked = i >= gates_.size() || gates_[i].tracked;
        learnt = learnt || (!was_tracked && decision.gates[i].tracked && state.tenants[i].busy);
      }
      gates_ = decision.gates;
      if (learnt) decision = DecideBy(now);
    }
    if (decision.next_decision_ns <= now) FAIL_CHECK("the next decision is due in the past");
    return decision;
  }

  State state;

 private:
  Decision DecideBy(std::uint64_t now) {
    hidden_.clear();
    for (std::size_t i = 0; i < std::min(gates_.size(), state.tenants.size()); ++i) {
      if (gates_[i].tracked || !state.tenants[i].busy) continue;
      state.tenants[i].busy = false;
      state.tenants[i].launched = 0;
      hidden_.push_back(i);
    }
    Decision decision = decider_.Decide(state, now);
    for (const std::size_t i : hidden_)
      state.tenants[i].busy = true;
    // Not CHECKs, because there are millions of them.
    if (decision.gates.size() != state.tenants.size() || decision.memory.size() != state.groups.size() ||
        decision.devices.size() != state.devices.size())
      FAIL("a decision and its state differ in size");
    KeepMemory(decision, state);
    return decision;
  }

  Decider decider_;
  std::vector<Gate> gates_;  // of the last decision
  std::vector<std::size_t> hidden_;
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

// Checks a table under the default settings, without linger and tolerance.
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
