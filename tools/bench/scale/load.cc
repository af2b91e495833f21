// Hundreds of clients in one process, with one daemon: each has its own session, shared memory and queues, as a shim
// has, and becomes busy and idle at a given rate.
//
// On each device one client is important and has a short burst every kTopPeriodNs; all others are equal. Like a
// launching thread, a client that is held while busy stays busy until it is opened. Measures the time from the
// important client's transition until the gate word of another client on its device has changed, both in this one
// thread, which polls the words whenever it has nothing to report.
//
// Prints "running" when all sessions exist and the load begins, then one line of JSON; then keeps the sessions, idle,
// until it is ended.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/command_syntax.h"
#include "tools/bench/gate/fake_client.h"
#include "tools/bench/scale/futex_pair.h"

namespace xschedd::bench {
namespace {

constexpr std::uint64_t kTopPeriodNs = 20'000'000;
constexpr std::uint64_t kTopBurstNs = 400'000;
constexpr std::uint64_t kProbeLimitNs = 1'000'000'000;
// If it is further behind than this, late reports are dropped: a backlog would be a different load.
constexpr std::uint64_t kMaxBehindNs = 2'000'000;
constexpr std::uint32_t kFutexIntervalUs = 1'000;
constexpr std::uint64_t kSettleNs = 500'000'000;
constexpr int kTopPriority = 50;

struct Options {
  std::string runtime_dir;
  std::uint32_t clients = 100;
  std::uint32_t queues = 4;
  std::uint32_t devices = 8;
  std::uint32_t rate = 100'000;
  std::uint32_t seconds = 5;
};

struct Simulated {
  std::unique_ptr<FakeClient> client;
  bool busy = false;

  void Toggle() {
    busy = !busy;
    client->ReportBusy(busy);
  }
};

// The important client of a device, and the one whose gate is polled.
struct Probe {
  Simulated* top = nullptr;
  Simulated* watched = nullptr;
  std::uint64_t next_ns = 0;   // its next transition
  std::uint64_t begun_ns = 0;  // when the transition whose effect is awaited was made; 0: none
};

struct Samples {
  std::vector<double> held, opened;
  std::uint64_t transitions = 0;
  std::uint64_t missing = 0;  // no effect within kProbeLimitNs
};

class Load {
 public:
  explicit Load(const Options& options) : options_(options), probes_(options.devices) {}

  Result<void> Connect() {
    for (std::uint32_t i = 0; i < options_.clients; ++i) {
      const std::uint32_t device = i % options_.devices;
      const bool is_top = i < options_.devices;
      const FakeDevice where{"0000:fa:" + std::string(1, static_cast<char>('0' + device / 10)) +
                                 static_cast<char>('0' + device % 10) + ".0",
                             "no device (scale)"};
      auto client = FakeClient::Connect(options_.runtime_dir, is_top ? kTopPriority : 0, "", where);
      if (!client) return tl::unexpected(client.error());
      if (auto made = (*client)->CreateQueues(options_.queues); !made) return made;
      auto simulated = std::make_unique<Simulated>();
      simulated->client = std::move(*client);
      if (is_top) {
        probes_[device].top = simulated.get();
      } else {
        probes_[device].watched = simulated.get();
        others_.push_back(simulated.get());
      }
      all_.push_back(std::move(simulated));
    }
    const std::uint64_t limit = MonotonicNs() + 30'000'000'000;
    for (const auto& simulated : all_) {
      while (!simulated->client->IsTracked()) {
        if (MonotonicNs() > limit) return Fail("a client is not tracked", "use the policy priority");
        ::usleep(1'000);
      }
    }
    return {};
  }

  // Reports at the wanted rate for `duration_ns`.
  Samples Run(std::uint64_t duration_ns) {
    Samples samples;
    const std::uint64_t interval = 1'000'000'000 / options_.rate;
    const std::uint64_t start = MonotonicNs();
    const std::uint64_t end = start + duration_ns;
    for (std::size_t i = 0; i < probes_.size(); ++i)
      probes_[i].next_ns = start + kTopPeriodNs * (i + 1) / probes_.size();
    std::uint64_t due = start;
    for (std::uint64_t now = start; now < end; now = MonotonicNs()) {
      bool awaits = false;
      for (Probe& probe : probes_) {
        Check(probe, samples);
        awaits = awaits || probe.begun_ns != 0;
        if (probe.begun_ns == 0 && probe.next_ns <= now) Begin(probe, samples);
      }
      if (due <= now) {
        samples.transitions += ToggleSome() ? 1 : 0;
        due = std::max(due + interval, now - std::min(now, kMaxBehindNs));
      } else if (!awaits) {
        ::sched_yield();
      }
    }
    return samples;
  }

  void Rest() {
    for (const auto& simulated : all_) {
      if (simulated->busy) simulated->Toggle();
    }
  }

 private:
  void Begin(Probe& probe, Samples& samples) {
    probe.begun_ns = MonotonicNs();
    probe.top->Toggle();
    ++samples.transitions;
    probe.next_ns += probe.top->busy ? kTopBurstNs : kTopPeriodNs - kTopBurstNs;
  }

  static void Check(Probe& probe, Samples& samples) {
    if (probe.begun_ns == 0) return;
    const bool changed = probe.watched->client->IsHeld() == probe.top->busy;
    const std::uint64_t passed = MonotonicNs() - probe.begun_ns;
    if (!changed && passed < kProbeLimitNs) return;
    probe.begun_ns = 0;
    if (!changed) {
      ++samples.missing;
    } else {
      (probe.top->busy ? samples.held : samples.opened).push_back(static_cast<double>(passed));
    }
  }

  // Toggles a random client that is not held; false: a few were tried and all are held.
  bool ToggleSome() {
    for (int i = 0; i < 8; ++i) {
      Simulated& one = *others_[random_() % others_.size()];
      if (one.busy && one.client->IsHeld()) continue;
      one.Toggle();
      return true;
    }
    return false;
  }

  const Options options_;
  std::vector<std::unique_ptr<Simulated>> all_;
  std::vector<Simulated*> others_;
  std::vector<Probe> probes_;
  std::minstd_rand random_{1};
};

std::string Quantiles(std::vector<double> values) {
  if (values.empty()) return "null";
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) {
    return values[std::min(values.size() - 1, static_cast<std::size_t>(fraction * static_cast<double>(values.size())))];
  };
  char text[128];
  std::snprintf(text, sizeof text, "{\"count\": %zu, \"p50_ns\": %.0f, \"p99_ns\": %.0f}", values.size(), at(0.5),
                at(0.99));
  return text;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(const Options& options) {
  FutexPair futex(kFutexIntervalUs);
  RaiseDescriptorLimit();
  Load load(options);
  if (const auto connected = load.Connect(); !connected) {
    std::fprintf(stderr, "scale_load: %s\n", connected.error().Line().c_str());
    return 1;
  }
  load.Run(kSettleNs);
  std::printf("running\n");
  std::fflush(stdout);
  futex.Restart();
  const std::uint64_t start = MonotonicNs();
  const Samples samples = load.Run(options.seconds * std::uint64_t{1'000'000'000});
  const double seconds = static_cast<double>(MonotonicNs() - start) / 1e9;
  const std::vector<double> bare = futex.Samples();
  std::vector<double> both = samples.held;
  both.insert(both.end(), samples.opened.begin(), samples.opened.end());
  std::printf(
      "{\"wanted_rate\": %u, \"achieved_rate\": %.0f, \"gate\": %s, \"held\": %s, \"opened\": %s, "
      "\"missing\": %llu, \"futex_round_trip\": %s}\n",
      options.rate, static_cast<double>(samples.transitions) / seconds, Quantiles(both).c_str(),
      Quantiles(samples.held).c_str(), Quantiles(samples.opened).c_str(),
      static_cast<unsigned long long>(samples.missing), Quantiles(bare).c_str());
  std::fflush(stdout);
  load.Rest();
  for (;;)
    ::pause();
}

}  // namespace
}  // namespace xschedd::bench

int main(int argc, char** argv) {
  xschedd::bench::Options options;
  xschedd::CommandSyntax syntax("Simulates many clients of one daemon.");
  syntax.AddOption("--runtime-dir", options.runtime_dir, "folder of the daemon's sockets", {.is_required = true});
  syntax.AddOption("--clients", options.clients, "number of clients; at least two for each device",
                   {.range = {{2, 10'000}}});
  syntax.AddOption("--queues", options.queues, "queues of each client", {.range = {{0, 64}}});
  syntax.AddOption("--devices", options.devices, "number of devices", {.range = {{1, 64}}});
  syntax.AddOption("--rate", options.rate, "transitions per second of all clients together",
                   {.range = {{1, 10'000'000}}});
  syntax.AddOption("--seconds", options.seconds, "duration in seconds", {.range = {{1, 3'600}}});
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;
  if (options.clients < 2 * options.devices) {
    std::fprintf(stderr, "scale_load: fewer than two clients for each device; give more --clients\n");
    return 2;
  }
  return xschedd::bench::Main(options);
}
