// Two honest clients of different priority on one device: the important one has a burst every few milliseconds, the
// other is always busy. Measures the time from the important one's transition until the other's gate word has changed,
// both in this one thread. Prints "running", then, after --seconds, one line of JSON; then waits until it is ended.
// Thread rule: one thread.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/clock.h"
#include "common/command_syntax.h"
#include "tools/bench/gate/fake_client.h"

namespace xschedd::bench {
namespace {

constexpr std::uint64_t kSpinNs = 300'000;
constexpr std::uint64_t kGiveUpNs = 2'000'000'000;
constexpr useconds_t kPollUs = 50;
constexpr useconds_t kBetweenUs = 4'000;

struct Outcome {
  std::vector<double> passed_ns;
  std::uint64_t missing = 0;
};

// Waits until the gate's state is `held`: spins at first, then polls, so as not to be a load itself.
void Await(const FakeClient& client, bool held, Outcome& result) {
  const std::uint64_t began = MonotonicNs();
  std::uint64_t now = began;
  while (client.IsHeld() != held) {
    if (now - began > kGiveUpNs) {
      ++result.missing;
      return;
    }
    if (now - began < kSpinNs) {
      ::sched_yield();
    } else {
      ::usleep(kPollUs);
    }
    now = MonotonicNs();
  }
  result.passed_ns.push_back(static_cast<double>(MonotonicNs() - began));
}

int Main(int argc, char** argv) {
  std::string runtime_dir;
  double seconds = 5;
  int high_priority = 50;
  int low_priority = 40;
  xschedd::CommandSyntax syntax("Two honest clients.");
  syntax.AddOption("--runtime-dir", runtime_dir, "", {.is_required = true});
  syntax.AddOption("--seconds", seconds, "", {.shows_default = true});
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  const FakeDevice device{"0000:fa:ce.0", "no device (honest)"};
  auto high = FakeClient::Connect(runtime_dir, high_priority, "", device);
  auto low = FakeClient::Connect(runtime_dir, low_priority, "", device);
  if (!high || !low) {
    std::fprintf(stderr, "victims: %s\n", (!high ? high : low).error().Line().c_str());
    return 1;
  }
  const std::uint64_t limit = MonotonicNs() + 60'000'000'000;
  while (!(*high)->IsTracked() || !(*low)->IsTracked()) {
    if (MonotonicNs() > limit) return 1;
    ::usleep(1'000);
  }
  (*low)->ReportBusy(true);
  std::printf("running\n");
  std::fflush(stdout);
  Outcome result;
  const std::uint64_t end = MonotonicNs() + static_cast<std::uint64_t>(seconds * 1e9);
  for (bool busy = true; MonotonicNs() < end; busy = !busy) {
    (*high)->ReportBusy(busy);
    Await(**low, busy, result);
    ::usleep(kBetweenUs);
  }
  (*high)->ReportBusy(false);
  std::vector<double>& values = result.passed_ns;
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) {
    return values.empty() ? 0 : values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
  };
  std::printf("{\"count\": %zu, \"missing\": %lu, \"p50_ns\": %.0f, \"p99_ns\": %.0f, \"max_ns\": %.0f}\n",
              values.size(), static_cast<unsigned long>(result.missing), at(0.5), at(0.99), at(1));
  std::fflush(stdout);
  ::pause();
  return 0;
}

}  // namespace
}  // namespace xschedd::bench

int main(int argc, char** argv) {
  return xschedd::bench::Main(argc, argv);
}
