// Measures what a launch costs the host: launches an empty kernel repeatedly on the default stream, in batches with a
// synchronisation after each. Only the launches are timed, and callgrind is to count only LaunchBatch.
#include <algorithm>
#include <vector>

#include "common/command_syntax.h"
#include "tools/bench/hip/burn.h"
#include "tools/bench/hip/tenant.h"

// Not inlined and with a C name: `callgrind --toggle-collect=LaunchBatch` counts the instructions of what it calls.
extern "C" __attribute__((noinline)) void LaunchBatch(unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    burn_nothing<<<1, 64, 0, nullptr>>>();
}

int main(int argc, char** argv) {
  using Value = xschedd::OptionForm::Value;
  unsigned launches = 100'000;
  unsigned batch = 64;
  double settle = 0;
  xschedd::CommandSyntax syntax("Launches an empty kernel repeatedly and prints what a launch costs the host.");
  syntax.AddOption("--launches", launches, "number of launches", {.value = Value::kPositive});
  syntax.AddOption("--batch", batch, "launches between two synchronisations", {.value = Value::kPositive});
  syntax.AddOption("--settle", settle, "seconds to wait after the first launch, so that a session can be made");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  tenant::UseDevice();
  burn_nothing<<<1, 64, 0, nullptr>>>();
  TENANT_HIP(hipDeviceSynchronize());
  if (settle > 0) tenant::SleepUntil(xschedd::MonotonicNs() + static_cast<std::uint64_t>(settle * 1e9));

  std::vector<double> batches;
  for (unsigned done = 0; done < launches; done += batch) {
    const std::uint64_t start = xschedd::MonotonicNs();
    LaunchBatch(batch);
    const std::uint64_t end = xschedd::MonotonicNs();
    TENANT_HIP(hipDeviceSynchronize());
    batches.push_back(static_cast<double>(end - start) / batch);
  }
  TENANT_HIP(hipGetLastError());
  std::nth_element(batches.begin(), batches.begin() + static_cast<long>(batches.size() / 2), batches.end());
  // The median of the batches, so that preempted batches do not count.
  std::printf("{\"launches\": %u, \"ns_per_launch\": %.1f}\n", launches, batches[batches.size() / 2]);
  return 0;
}
