// Each group's tenants side by side, however a State lists them. Thread rule: one user.
#pragma once

#include <span>
#include <vector>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Roster {
 public:
  // O(n). The State must not change while the result is used.
  void Build(const State& state);

  // Indices into State::tenants.
  std::span<const std::uint32_t> TenantsOf(std::uint32_t group) const {
    return {order_.data() + first_[group], first_[group + 1] - first_[group]};
  }

 private:
  std::vector<std::uint32_t> first_;  // by group, and one more: the end
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> place_;
};

}  // namespace xschedd::policy
