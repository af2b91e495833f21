// A small inference server: requests arrive at random (Poisson) times; each copies its input to the device, runs a
// few short kernels on the default stream, copies the result back with a blocking copy and checks it against the CPU.
//
// Open loop: a request's latency counts from its arrival, not from when the server begins it, so a slow device shows in
// the latencies of all requests that wait. The arrivals of `--pattern` seconds are drawn once and repeated, so that
// stretches of that length see the same arrivals and can be compared. `--on-ms` makes them come in bursts, `--periodic`
// at equal intervals; with `--drop`, requests that come while another is served are dropped, as frames of a video are.
//
// With `--launch-us` the host takes that long before each kernel and runs ahead of the device, as an eager framework
// does; if kernels are shorter than that, the host is the bottleneck.
//
// With `--callback` no call of the host waits for the device: a callback says that the result is there, as in XLA.
//
// With `--think-ms` the loop is closed: the next request comes that long after the end of the last. With `--barrier`
// the program is a rank of a job: each request ends at a barrier, when all ranks have reached it.
//
// Output (--out): one JSON line per request: arrival (CLOCK_MONOTONIC), latency, service time, whether the result was
// right.
#include <semaphore.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/command_syntax.h"
#include "tools/bench/hip/barrier.h"
#include "tools/bench/hip/burn.h"
#include "tools/bench/hip/tenant.h"

namespace {

struct Options {
  double rate = 8;      // requests a second
  double seconds = 10;  // 0: until SIGTERM
  double pattern = 8;   // seconds
  double on_ms = 0;     // 0: always
  double off_ms = 0;
  bool periodic = false;
  bool drop = false;
  double think_ms = -1;  // below 0: open loop
  std::string barrier;
  std::uint32_t ranks = 1;
  std::uint32_t kernels = 8;
  std::uint32_t kernel_us = 2000;
  std::uint32_t launch_us = 0;
  bool callback = false;
  double device_part = 1;
  std::uint32_t words = 4096;
  std::uint64_t seed = 1;
  std::string out;
};

// Arrival times of one pattern, in nanoseconds from its start.
std::vector<std::uint64_t> DrawArrivals(const Options& options) {
  std::mt19937_64 random(options.seed);
  std::exponential_distribution<double> gap(options.rate);
  std::vector<std::uint64_t> arrivals;
  const double on = options.on_ms / 1e3;
  const double off = options.off_ms / 1e3;
  const auto next = [&] { return options.periodic ? 1 / options.rate : gap(random); };
  // `at` advances only in the on-times.
  for (double at = next();; at += next()) {
    const double arrival = on > 0 ? at + std::floor(at / on) * off : at;
    if (arrival >= options.pattern) break;
    arrivals.push_back(static_cast<std::uint64_t>(arrival * 1e9));
  }
  if (arrivals.empty()) arrivals.push_back(0);
  return arrivals;
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options), workgroups_(burn::WorkgroupsForPart(tenant::ComputeUnits(), options.device_part)) {
    bytes_ = options.words * sizeof(std::uint32_t);
    TENANT_HIP(hipHostMalloc(reinterpret_cast<void**>(&input_), bytes_, hipHostMallocDefault));
    TENANT_HIP(hipHostMalloc(reinterpret_cast<void**>(&result_), bytes_, hipHostMallocDefault));
    TENANT_HIP(hipMalloc(reinterpret_cast<void**>(&device_), bytes_));
    ticks_ = burn::TicksFor(options.kernel_us);
    sem_init(&done_, 0, 0);
  }
  ~Server() {
    sem_destroy(&done_);
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
      // Sleeps, because on few cores a computing host would wait for a core and not for the device.
      if (options_.launch_us != 0)
        tenant::SleepUntil(xschedd::MonotonicNs() + std::uint64_t{options_.launch_us} * 1000);
      const burn::Arguments arguments{device_, options_.words, number ^ step, options_.kernel_us, ticks_};
      burn_mix<<<workgroups_, burn::kWorkgroupSize, 0, nullptr>>>(arguments);
      TENANT_HIP(hipGetLastError());
    }
    Await();
    for (std::uint32_t i = 0; i < options_.words; ++i) {
      std::uint32_t expected = number * 2654435761u + i;
      for (std::uint32_t step = 0; step < options_.kernels; ++step)
        expected = burn::Mix(expected, number ^ step);
      if (result_[i] != expected) return false;
    }
    return true;
  }

 private:
  // Copies the result to the host.
  void Await() {
    if (!options_.callback) {
      TENANT_HIP(hipMemcpy(result_, device_, bytes_, hipMemcpyDeviceToHost));
      return;
    }
    TENANT_HIP(hipMemcpyAsync(result_, device_, bytes_, hipMemcpyDeviceToHost, nullptr));
    const auto done = [](hipStream_t, hipError_t, void* server) { sem_post(&static_cast<Server*>(server)->done_); };
    TENANT_HIP(hipStreamAddCallback(nullptr, done, this, 0));
    while (sem_wait(&done_) != 0) {
    }
  }

  const Options& options_;
  const unsigned workgroups_;
  sem_t done_;
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

// Serves requests and records them.
class Loop {
 public:
  Loop(const Options& options, Server& server)
      : options_(options), server_(server), barrier_(options.barrier, options.ranks), out_(options.out) {}

  // Loads the code object and makes the hardware queue, so that no request includes that.
  void WarmUp() {
    for (int i = 0; i < 2; ++i)
      wrong_ += server_.Serve(number_++) ? 0 : 1;
  }

  void Open(std::uint64_t start, std::uint64_t end) {
    const std::vector<std::uint64_t> arrivals = DrawArrivals(options_);
    const auto pattern_ns = static_cast<std::uint64_t>(options_.pattern * 1e9);
    for (std::uint64_t lap = 0; !tenant::IsStopping(); ++lap) {
      for (const std::uint64_t offset : arrivals) {
        const std::uint64_t arrival = start + lap * pattern_ns + offset;
        if (arrival >= end) return;
        if (options_.drop && arrival < last_done_) continue;
        tenant::SleepUntil(arrival);
        if (tenant::IsStopping()) return;
        Request(arrival);
      }
    }
  }

  void Closed(std::uint64_t end) {
    const auto think_ns = static_cast<std::uint64_t>(options_.think_ms * 1e6);
    for (std::uint64_t now = xschedd::MonotonicNs(); now < end && !tenant::IsStopping(); now = xschedd::MonotonicNs()) {
      Request(now);
      tenant::SleepUntil(last_done_ + think_ns);
    }
  }

  // Prints the summary; true if all results were right.
  bool Finish() const {
    std::printf("{\"requests\": %zu, \"wrong_results\": %u, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n", latencies_.size(),
                wrong_, Quantile(latencies_, 0.50), Quantile(latencies_, 0.99));
    return wrong_ == 0;
  }

 private:
  void Request(std::uint64_t arrival) {
    const std::uint64_t start = xschedd::MonotonicNs();
    const bool ok = server_.Serve(number_++);
    barrier_.Meet();
    last_done_ = xschedd::MonotonicNs();
    wrong_ += ok ? 0 : 1;
    latencies_.push_back(static_cast<double>(last_done_ - arrival) / 1e6);
    out_.Write("{\"t_mono_ns\": %llu, \"latency_ms\": %.3f, \"service_ms\": %.3f, \"ok\": %s}\n",
               static_cast<unsigned long long>(arrival), latencies_.back(),
               static_cast<double>(last_done_ - start) / 1e6, ok ? "true" : "false");
  }

  const Options& options_;
  Server& server_;
  tenant::Barrier barrier_;
  tenant::LineFile out_;
  std::vector<double> latencies_;
  std::uint32_t number_ = 0;
  std::uint32_t wrong_ = 0;
  std::uint64_t last_done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  using Value = xschedd::OptionForm::Value;
  Options options;
  xschedd::CommandSyntax syntax("Serves requests that arrive at random times, and measures how long each takes.");
  syntax.AddOption("--rate", options.rate, "requests per second", {.value = Value::kPositive});
  syntax.AddOption("--seconds", options.seconds, "duration in seconds; 0: until SIGTERM",
                   {.value = Value::kNonNegative});
  syntax.AddOption("--pattern", options.pattern, "seconds after which arrivals repeat", {.value = Value::kPositive});
  syntax.AddOption("--on-ms", options.on_ms, "requests come only in on-times of this length; 0: always");
  syntax.AddOption("--off-ms", options.off_ms, "length of the off-times between them", {.value = Value::kNonNegative});
  syntax.AddFlag("--periodic", options.periodic, "requests come at equal intervals");
  syntax.AddFlag("--drop", options.drop, "drop requests that come while another is served");
  syntax.AddOption("--think-ms", options.think_ms, "closed loop: the pause from one request's end to the next");
  syntax.AddOption("--barrier", options.barrier,
                   "shared file of the barrier at which the ranks of a job wait after each request");
  syntax.AddOption("--ranks", options.ranks, "number of ranks of that job", {.value = Value::kPositive});
  syntax.AddOption("--kernels", options.kernels, "kernels per request", {.value = Value::kPositive});
  syntax.AddOption("--kernel-us", options.kernel_us, "device time of a kernel in microseconds");
  syntax.AddOption("--launch-us", options.launch_us, "host time before each kernel in microseconds");
  syntax.AddFlag("--callback", options.callback, "the host learns of a result by a callback, and waits in no call");
  syntax.AddOption("--device-part", options.device_part, "part of the device that a kernel fills",
                   {.range = {{0.01, 1.0}}});
  syntax.AddOption("--words", options.words, "32-bit words copied in and out", {.range = {{1, 65536}}});
  syntax.AddOption("--seed", options.seed, "random seed of the arrivals");
  syntax.AddOption("--out", options.out, "file for one JSON line per request");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  tenant::StopOnSignal();
  tenant::UseDevice();
  Server server(options);
  Loop loop(options, server);
  loop.WarmUp();
  const std::uint64_t start = xschedd::MonotonicNs();
  std::printf("{\"ready\": true, \"start_ns\": %llu}\n", static_cast<unsigned long long>(start));
  std::fflush(stdout);
  const auto end = options.seconds > 0 ? start + static_cast<std::uint64_t>(options.seconds * 1e9) : UINT64_MAX;
  if (options.think_ms >= 0) {
    loop.Closed(end);
  } else {
    loop.Open(start, end);
  }
  return loop.Finish() ? 0 : 1;
}
