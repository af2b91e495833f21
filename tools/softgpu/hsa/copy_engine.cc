#include "tools/softgpu/hsa/copy_engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <mutex>

#include "tools/softgpu/hsa/futex.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/signal.h"

namespace softgpu {

namespace {

struct Submitted {
  CopyJob job;
  uint64_t at_ns;
};

class CopyEngine {
 public:
  void submit(uint32_t device, uint32_t engine, CopyJob job) {
    {
      const std::lock_guard guard(lock_);
      jobs_.push_back({std::move(job), now_ns()});
      if (!started_) {
        started_ = true;
        device_ = device;
        engine_ = engine;
        start_thread("softgpu-copy", [this] { run(); });
      }
    }
    submitted_.notify();
  }

 private:
  Submitted next() {
    for (;;) {
      const uint32_t ticket = submitted_.prepare();
      {
        const std::lock_guard guard(lock_);
        if (!jobs_.empty()) {
          submitted_.cancel();
          Submitted s = std::move(jobs_.front());
          jobs_.pop_front();
          return s;
        }
      }
      submitted_.wait(ticket);
    }
  }

  void run() {
    Runtime& rt = *runtime();
    for (;;) {
      const Submitted s = next();
      uint64_t ready_ns = std::max(s.at_ns, last_end_ns_);
      for (const hsa_signal_t dependency : s.job.dependencies) {
        if (dependency.handle == 0) continue;
        Signal& signal = *Signal::from(dependency);
        const bool waited = signal.value().load() > 0;
        wait_signal(signal, HSA_SIGNAL_CONDITION_LT, 1, kForever);
        const uint64_t stamp = signal.device_done_ns.load(std::memory_order_relaxed);
        ready_ns = std::max(ready_ns, stamp != 0 ? stamp : waited ? now_ns() : ready_ns);
      }
      const double duration = static_cast<double>(copy_duration_ns(s.job.path, s.job.bytes)) * rt.settings.clock_scale;
      const Booking booking =
          rt.region.device(device_).copy[engine_].book({.pid = getpid(),
                                                        .units = 1,
                                                        .now_ns = now_ns(),
                                                        .arrival_ns = ready_ns,
                                                        .duration_ns = static_cast<uint64_t>(duration)});
      sleep_until(booking.start_ns);
      s.job.move();
      sleep_until(booking.end_ns);
      last_end_ns_ = booking.end_ns;
      rt.trace.write(
          {"copy", s.job.name, device_, engine_, 0, nullptr, booking.arrival_ns, booking.start_ns, booking.end_ns});
      if (s.job.completion.handle != 0) Signal::from(s.job.completion)->complete(booking.start_ns, booking.end_ns);
    }
  }

  std::mutex lock_;
  std::deque<Submitted> jobs_;
  bool started_ = false;
  EventCount submitted_;
  uint32_t device_ = 0;
  uint32_t engine_ = 0;
  uint64_t last_end_ns_ = 0;  // only the engine's thread
};

}  // namespace

void submit_copy(Agent& to, Agent& from, CopyJob job) {
  static auto* engines = new std::array<std::array<CopyEngine, kCopyEngines>, kMaxDevices>;  // leaked, see runtime.h
  uint32_t device = 0;
  uint32_t engine = 0;
  if (from.is_gpu()) {
    device = from.ordinal;
    engine = 1;
    job.path = !to.is_gpu()           ? CopyPath::kDeviceToHost
               : to.ordinal == device ? CopyPath::kDeviceToDevice
                                      : CopyPath::kPeer;
  } else {
    device = to.is_gpu() ? to.ordinal : 0;
    job.path = CopyPath::kHostToDevice;
  }
  (*engines)[device][engine].submit(device, engine, std::move(job));
}

}  // namespace softgpu
