#include "daemon/policy/fifo.h"

namespace xschedd::policy {

Decision DecideFifo(const State& state) {
  Decision decision;
  decision.memory.resize(state.groups.size());
  decision.gates.reserve(state.tenants.size());
  for (const Tenant& tenant : state.tenants) {
    Gate gate;
    if (state.groups[tenant.group].hold) gate = Gate{.held = true, .tracked = true, .why = Why::kHold};
    decision.gates.push_back(gate);
  }
  return decision;
}

}  // namespace xschedd::policy
