// A small background job: keeps `--depth` kernels queued on `--streams` streams for as long as it runs, each using the
// whole device or `--device-part` of it. Counts completed kernels, and occasionally copies a stream's data back and
// checks it.
//
// Output (--out): a JSON line at most every 10 ms: time (CLOCK_MONOTONIC) and how many kernels had completed by then.
#include <deque>
#include <memory>
#include <vector>

#include "common/command_syntax.h"
#include "tools/bench/hip/burn.h"
#include "tools/bench/hip/tenant.h"

namespace {

constexpr std::uint64_t kLineEveryNs = 10'000'000;

struct Options {
  std::uint32_t kernel_us = 1300;
  double device_part = 1;
  std::uint32_t streams = 2;
  std::uint32_t depth = 64;         // kernels queued, all streams together
  std::uint32_t batch = 4;          // kernels between two events: the resolution of progress
  std::uint32_t check_every = 512;  // kernels of a stream between two checks
  std::uint32_t words = 1024;
  double seconds = 10;  // 0: until SIGTERM
  std::string out;
};

// One stream, its data, and the events that show its progress.
class Lane {
 public:
  Lane(const Options& options, unsigned workgroups) : options_(options), workgroups_(workgroups) {
    TENANT_HIP(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    const std::size_t bytes = options.words * sizeof(std::uint32_t);
    TENANT_HIP(hipMalloc(reinterpret_cast<void**>(&data_), bytes));
    TENANT_HIP(hipMemsetAsync(data_, 0, bytes, stream_));
    TENANT_HIP(hipStreamSynchronize(stream_));
    expected_.resize(options.words, 0);
    ticks_ = burn::TicksFor(options.kernel_us);
  }
  ~Lane() {
    for (const hipEvent_t event : idle_)
      (void)hipEventDestroy(event);
    for (const hipEvent_t event : pending_)
      (void)hipEventDestroy(event);
    (void)hipFree(data_);
    (void)hipStreamDestroy(stream_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Queues one batch, after waiting until there is room for it. Returns how many kernels were seen to complete.
  std::uint32_t Submit(std::uint32_t max_batches) {
    std::uint32_t completed = 0;
    while (pending_.size() >= max_batches)
      completed += WaitOldest();
    for (std::uint32_t i = 0; i < options_.batch; ++i) {
      const burn::Arguments arguments{data_, options_.words, step_, options_.kernel_us, ticks_};
      burn_mix<<<workgroups_, burn::kWorkgroupSize, 0, stream_>>>(arguments);
      TENANT_HIP(hipGetLastError());
      for (std::uint32_t& value : expected_)
        value = burn::Mix(value, step_);
      ++step_;
    }
    hipEvent_t event = nullptr;
    if (idle_.empty()) {
      TENANT_HIP(hipEventCreateWithFlags(&event, hipEventBlockingSync | hipEventDisableTiming));
    } else {
      event = idle_.back();
      idle_.pop_back();
    }
    TENANT_HIP(hipEventRecord(event, stream_));
    pending_.push_back(event);
    return completed;
  }

  std::uint32_t Drain() {
    std::uint32_t completed = 0;
    while (!pending_.empty())
      completed += WaitOldest();
    return completed;
  }

  bool IsCheckDue() const { return step_ - checked_ >= options_.check_every; }

  // The copy is ordered behind everything queued on the stream, so it shows the result of all.
  bool IsResultRight() {
    std::vector<std::uint32_t> result(options_.words);
    TENANT_HIP(hipMemcpyAsync(result.data(), data_, result.size() * sizeof(result[0]), hipMemcpyDeviceToHost, stream_));
    TENANT_HIP(hipStreamSynchronize(stream_));
    checked_ = step_;
    return result == expected_;
  }

 private:
  std::uint32_t WaitOldest() {
    TENANT_HIP(hipEventSynchronize(pending_.front()));
    idle_.push_back(pending_.front());
    pending_.pop_front();
    return options_.batch;
  }

  const Options& options_;
  const unsigned workgroups_;
  hipStream_t stream_ = nullptr;
  std::uint32_t* data_ = nullptr;
  std::uint32_t ticks_ = 0;
  std::uint32_t step_ = 0;
  std::uint32_t checked_ = 0;
  std::vector<std::uint32_t> expected_;
  std::deque<hipEvent_t> pending_;
  std::vector<hipEvent_t> idle_;
};

}  // namespace

int main(int argc, char** argv) {
  using Value = xschedd::OptionForm::Value;
  Options options;
  xschedd::CommandSyntax syntax("Keeps the device busy with long kernels and counts those that complete.");
  syntax.AddOption("--kernel-us", options.kernel_us, "device time of a kernel in microseconds");
  syntax.AddOption("--device-part", options.device_part, "part of the device that a kernel fills",
                   {.range = {{0.01, 1.0}}});
  syntax.AddOption("--streams", options.streams, "streams", {.range = {{1, 64}}});
  syntax.AddOption("--depth", options.depth, "kernels queued, all streams together", {.value = Value::kPositive});
  syntax.AddOption("--batch", options.batch, "kernels between two events", {.value = Value::kPositive});
  syntax.AddOption("--check-every", options.check_every, "kernels of a stream between two checks");
  syntax.AddOption("--words", options.words, "32-bit words that each kernel changes", {.range = {{1, 65536}}});
  syntax.AddOption("--seconds", options.seconds, "duration in seconds; 0: until SIGTERM",
                   {.value = Value::kNonNegative});
  syntax.AddOption("--out", options.out, "file for JSON lines with the count of completed kernels");
  if (const auto status = syntax.ReadOrPrint(argc, argv)) return *status;

  tenant::StopOnSignal();
  tenant::UseDevice();
  tenant::LineFile out(options.out);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::uint32_t i = 0; i < options.streams; ++i) {
    lanes.push_back(
        std::make_unique<Lane>(options, burn::WorkgroupsForPart(tenant::ComputeUnits(), options.device_part)));
  }
  std::printf("{\"ready\": true}\n");
  std::fflush(stdout);

  const std::uint32_t max_batches = std::max(1u, options.depth / (options.batch * options.streams));
  const std::uint64_t start = xschedd::MonotonicNs();
  const auto end = options.seconds > 0 ? start + static_cast<std::uint64_t>(options.seconds * 1e9) : UINT64_MAX;
  std::uint64_t completed = 0;
  std::uint64_t written_ns = 0;
  std::uint32_t checks = 0;
  std::uint32_t wrong = 0;
  const auto report = [&](bool always) {
    const std::uint64_t now = xschedd::MonotonicNs();
    if (!always && now - written_ns < kLineEveryNs) return;
    written_ns = now;
    out.Write("{\"t_mono_ns\": %llu, \"completed\": %llu}\n", static_cast<unsigned long long>(now),
              static_cast<unsigned long long>(completed));
  };
  report(true);
  const auto check = [&](Lane& lane) {
    completed += lane.Drain();
    ++checks;
    wrong += lane.IsResultRight() ? 0 : 1;
  };
  while (!tenant::IsStopping() && xschedd::MonotonicNs() < end) {
    for (const auto& lane : lanes) {
      completed += lane->Submit(max_batches);
      if (lane->IsCheckDue()) check(*lane);
      report(false);
    }
  }
  for (const auto& lane : lanes)
    check(*lane);
  report(true);
  const double elapsed = static_cast<double>(xschedd::MonotonicNs() - start) / 1e9;
  std::printf("{\"completed\": %llu, \"per_second\": %.1f, \"checks\": %u, \"wrong_results\": %u}\n",
              static_cast<unsigned long long>(completed), static_cast<double>(completed) / elapsed, checks, wrong);
  return wrong == 0 ? 0 : 1;
}
