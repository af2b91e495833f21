#include "daemon/policy/roster.h"

namespace xschedd::policy {

void Roster::Build(const State& state) {
  first_.assign(state.groups.size() + 1, 0);
  for (const Tenant& tenant : state.tenants)
    ++first_[tenant.group + 1];
  for (std::size_t group = 1; group < first_.size(); ++group)
    first_[group] += first_[group - 1];
  place_.assign(first_.begin(), first_.end());
  order_.resize(state.tenants.size());
  for (std::uint32_t i = 0; i < state.tenants.size(); ++i)
    order_[place_[state.tenants[i].group]++] = i;
}

}  // namespace xschedd::policy
