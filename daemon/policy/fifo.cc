#include "daemon/policy/fifo.h"

namespace xschedd::policy {

void DecideFifo(const State& state, Decision& decision) {
  decision.next_decision_ns = kNever;
  decision.memory.assign(state.groups.size(), GroupMemory{});
  decision.devices.assign(state.devices.size(), DeviceMemory{});
  decision.gates.assign(state.tenants.size(), Gate{});
  for (std::size_t i = 0; i < state.tenants.size(); ++i) {
    if (state.groups[state.tenants[i].group].hold) {
      decision.gates[i] = Gate{.held = true, .tracked = true, .why = Why::kHold};
    }
  }
}

}  // namespace xschedd::policy
