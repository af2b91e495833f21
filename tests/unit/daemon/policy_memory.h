// Keeps a decision's memory in the state for the next decision, as the daemon does. Thread rule: pure.
#pragma once

#include "daemon/policy/decide.h"

namespace xschedd::policy::test {

inline void KeepMemory(const Decision& decision, State& state) {
  for (std::size_t i = 0; i < state.groups.size(); ++i)
    state.groups[i].memory = decision.memory[i];
  for (std::size_t i = 0; i < state.devices.size(); ++i)
    state.devices[i].memory = decision.devices[i];
  for (Tenant& tenant : state.tenants)
    tenant.ran_ns = tenant.launched = 0;
}

}  // namespace xschedd::policy::test
