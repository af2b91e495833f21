#include "daemon/policy/service.h"

#include <algorithm>
#include <array>

namespace xschedd::policy {
namespace {

// More than any host has; above it, each gang costs an allocation.
constexpr std::size_t kManyDevices = 64;

std::uint64_t Greatest(const Candidate& candidate, std::span<std::uint64_t> by_device) {
  std::uint64_t most = 0;
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    most = std::max(most, by_device[tenant.device] += tenant.ran_ns);
  }
  return most;
}

}  // namespace

std::uint64_t Service(const Candidate& candidate) {
  if (candidate.tenants.size() == 1) return candidate.state.tenants[candidate.tenants.front()].ran_ns;
  const std::size_t devices = candidate.state.devices.size();
  if (devices > kManyDevices) {
    std::vector<std::uint64_t> by_device(devices);
    return Greatest(candidate, by_device);
  }
  std::array<std::uint64_t, kManyDevices> by_device;
  std::fill_n(by_device.begin(), devices, 0);
  return Greatest(candidate, by_device);
}

}  // namespace xschedd::policy
