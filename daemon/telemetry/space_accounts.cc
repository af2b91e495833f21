#include "daemon/telemetry/space_accounts.h"

#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr std::size_t kSpaceBytes = 64;

}  // namespace

std::string SpaceOf(const Claim* claim) {
  if (claim == nullptr) return kNoSpace;
  for (const char* const label : {"namespace", "partition"}) {
    const auto found = claim->labels.find(label);
    if (found != claim->labels.end() && !found->second.empty()) return CleanText(found->second, kSpaceBytes);
  }
  return kNoSpace;
}

void SpaceAccounts::Use(const std::string& space, std::uint64_t gpu_ns, std::uint64_t gained_ns) {
  used_.Add(space, {gpu_ns, gained_ns});
}

void SpaceAccounts::Wait(const std::string& waiter, const std::string& blocker, std::uint64_t ns) {
  waits_.Add({waiter, blocker}, {ns});
}

void SpaceAccounts::ChooseSeries() {
  used_.Choose();
  waits_.Choose();
}

}  // namespace xschedd
