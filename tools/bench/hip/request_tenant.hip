// An inference server in small: requests arrive at random (Poisson) times, each copies its input to the device, runs a
// few short kernels on the default stream, copies the result back with a blocking copy and checks it against the CPU.
//
// Open loop: a request's latency counts from the time it was to arrive, not from when the server came to it, so a slow
// device shows in the latencies of all who wait behind. The arrivals of `--pattern` seconds are drawn once and
// repeated: stretches of that length see the same arrivals, and can be compared.
//
// Output (--out): one JSON line a request: arrival (CLOCK_MONOTONIC), latency, service time, whether the result was
// right.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <random>
#include <vector>

#include "tools/bench/hip/burn.h"
#include "tools/bench/hip/tenant.h"

namespace {

struct Options {
  double rate = 8;      // requests a second
  double seconds = 10;  // 0: until SIGTERM
  double pattern = 8;   // seconds
  std::uint32_t kernels = 8;
  std::uint32_t kernel_us = 2000;
  std::uint32_t words = 4096;
  std::uint64_t seed = 1;
  std::string out;
};

// Arrival times of one pattern, in nanoseconds from its start.
std::vector<std::uint64_t> DrawArrivals(const Options& options) {
  std::mt19937_64 random(options.seed);
  std::exponential_distribution<double> gap(options.rate);
  std::vector<std::uint64_t> arrivals;
  for (double at = gap(random); at < options.pattern; at += gap(random)) {
    arrivals.push_back(static_cast<std::uint64_t>(at * 1e9));
  }
  if (arrivals.empty()) arrivals.push_back(0);
  return arrivals;
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options), workgroups_(burn::WorkgroupsForWholeDevice(tenant::ComputeUnits())) {
    bytes_ = options.words * sizeof(std::uint32_t);
    TENANT_HIP(hipHostMalloc(reinterpret_cast<void**>(&input_), bytes_, hipHostMallocDefault));
    TENANT_HIP(hipHostMalloc(reinterpret_cast<void**>(&result_), bytes_, hipHostMallocDefault));
    TENANT_HIP(hipMalloc(reinterpret_cast<void**>(&device_), bytes_));
    ticks_ = burn::TicksFor(options.kernel_us);
  }
  ~Server() {
    (void)hipFree(device_);
    (void)hipHostFree(result_);
    (void)hipHostFree(input_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // One request. True when its result is right.
  bool Serve(std::uint32_t number) {
    for (std::uint32_t i = 0; i < options_.words; ++i)
      input_[i] = number * 2654435761u + i;
    TENANT_HIP(hipMemcpyAsync(device_, input_, bytes_, hipMemcpyHostToDevice, nullptr));
    for (std::uint32_t step = 0; step < options_.kernels; ++step) {
      const burn::Arguments arguments{device_, options_.words, number ^ step, options_.kernel_us, ticks_};
      burn_mix<<<workgroups_, burn::kWorkgroupSize, 0, nullptr>>>(arguments);
      TENANT_HIP(hipGetLastError());
    }
    TENANT_HIP(hipMemcpy(result_, device_, bytes_, hipMemcpyDeviceToHost));
    for (std::uint32_t i = 0; i < options_.words; ++i) {
      std::uint32_t expected = number * 2654435761u + i;
      for (std::uint32_t step = 0; step < options_.kernels; ++step)
        expected = burn::Mix(expected, number ^ step);
      if (result_[i] != expected) return false;
    }
    return true;
  }

 private:
  const Options& options_;
  const unsigned workgroups_;
  std::size_t bytes_ = 0;
  std::uint32_t ticks_ = 0;
  std::uint32_t* input_ = nullptr;
  std::uint32_t* result_ = nullptr;
  std::uint32_t* device_ = nullptr;
};

double Quantile(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(quantile * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Serves requests that arrive at random times, and measures how long each takes.");
  app.add_option("--rate", options.rate, "requests a second")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "how long; 0: until SIGTERM")->check(CLI::NonNegativeNumber);
  app.add_option("--pattern", options.pattern, "seconds after which arrivals repeat")->check(CLI::PositiveNumber);
  app.add_option("--kernels", options.kernels, "kernels a request")->check(CLI::PositiveNumber);
  app.add_option("--kernel-us", options.kernel_us, "device time of a kernel in microseconds");
  app.add_option("--words", options.words, "32-bit words copied in and out")->check(CLI::Range(1, 65536));
  app.add_option("--seed", options.seed, "of the arrivals");
  app.add_option("--out", options.out, "file for one JSON line a request");
  CLI11_PARSE(app, argc, argv);

  tenant::StopOnSignal();
  tenant::UseDevice();
  tenant::LineFile out(options.out);
  Server server(options);
  const std::vector<std::uint64_t> arrivals = DrawArrivals(options);
  // Loads the code object and makes the hardware queue: not part of any request.
  bool warm = server.Serve(0);
  warm = server.Serve(1) && warm;
  std::vector<double> latencies;
  std::uint32_t number = 2;
  std::uint32_t wrong = warm ? 0 : 1;
  const std::uint64_t start = xschedd::MonotonicNs();
  std::printf("{\"ready\": true, \"start_ns\": %llu}\n", static_cast<unsigned long long>(start));
  std::fflush(stdout);
  const auto pattern_ns = static_cast<std::uint64_t>(options.pattern * 1e9);
  const auto end = options.seconds > 0 ? start + static_cast<std::uint64_t>(options.seconds * 1e9) : UINT64_MAX;
  for (std::uint64_t lap = 0; !tenant::IsStopping(); ++lap) {
    bool is_over = false;
    for (const std::uint64_t offset : arrivals) {
      const std::uint64_t arrival = start + lap * pattern_ns + offset;
      is_over = arrival >= end;
      if (is_over) break;
      tenant::SleepUntil(arrival);
      if (tenant::IsStopping()) break;
      const std::uint64_t begun = xschedd::MonotonicNs();
      const bool ok = server.Serve(number++);
      const std::uint64_t done = xschedd::MonotonicNs();
      wrong += ok ? 0 : 1;
      latencies.push_back(static_cast<double>(done - arrival) / 1e6);
      out.Write("{\"t_mono_ns\": %llu, \"latency_ms\": %.3f, \"service_ms\": %.3f, \"ok\": %s}\n",
                static_cast<unsigned long long>(arrival), latencies.back(), static_cast<double>(done - begun) / 1e6,
                ok ? "true" : "false");
    }
    if (is_over) break;
  }
  std::printf("{\"requests\": %zu, \"wrong_results\": %u, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n", latencies.size(),
              wrong, Quantile(latencies, 0.50), Quantile(latencies, 0.99));
  return wrong == 0 ? 0 : 1;
}
