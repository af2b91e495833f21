// Many threads at once, each with streams of its own and operations chosen at random: kernels, copies, fills, events,
// callbacks, graphs, captures, streams made and destroyed. Each thread sees only its own
// work, so each has its own transcript. One thread makes and launches graphs, of a kernel of its own (kernels.h says
// why); only one, because 5.2.3 crashes if two do (3 of 40 runs, without the shim). Which calls of the others succeed
// while it captures in the global mode is random: they pause then, except for launches. With HIP 6 they pause in every mode:
// it refuses another thread's hipMemcpy, and invalidates the capture for it.
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "values.h"

using differential::Lane;

namespace {

constexpr unsigned kThreads = 6;

// Locked shared around calls that a global capture of another thread forbids; exclusively around such a capture.
std::shared_mutex captures;

void Count(hipStream_t, hipError_t status, void* data) {
  if (status == hipSuccess) ++*static_cast<std::atomic<unsigned>*>(data);
}

class Thread {
 public:
  Thread(const differential::Run& run, unsigned me, int device)
      : lane_(run.MakeLane("thread " + std::to_string(me))), me_(me), device_(device) {}

  void Work(unsigned steps) {
    CALL(lane_, hipSetDevice(device_));
    {
      const std::shared_lock lock(captures);
      for (differential::Values& one : values_)
        one.Make(lane_);
      Make();
    }
    for (unsigned step = 0; step < steps; ++step)
      Step(step);
    const std::shared_lock lock(captures);
    Drain();
    CHECK(lane_, called_ == wanted_);
    for (differential::Values& one : values_) {
      one.Check(lane_, "values");
      one.Free(lane_);
    }
    Unmake();
  }

 private:
  void Make() {
    CALL(lane_, hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
    CALL(lane_, hipStreamCreateWithPriority(&side_, hipStreamNonBlocking, -1));
    CALL(lane_, hipEventCreateWithFlags(&event_, hipEventDisableTiming));
  }
  void Unmake() {
    CALL(lane_, hipStreamDestroy(stream_));
    CALL(lane_, hipStreamDestroy(side_));
    CALL(lane_, hipEventDestroy(event_));
  }
  void Drain() {
    CALL(lane_, hipStreamSynchronize(stream_));
    CALL(lane_, hipStreamSynchronize(side_));
  }

  void Launch(hipStream_t stream, unsigned step, std::uint64_t micros) {
    LAUNCH(lane_,
           scale_add<<<2, 128, 0, stream>>>(values_[0].device, values_[1].device, step, differential::kCount, micros));
  }

  void Step(unsigned step) {
    const unsigned what = lane_.Random(24);
    if (me_ == 0 && what < 3) {
      std::shared_lock shared(captures, std::defer_lock);
      std::unique_lock alone(captures, std::defer_lock);
      what == 0 || HIP_VERSION_MAJOR >= 6 ? alone.lock() : shared.lock();
      constexpr hipStreamCaptureMode kModes[] = {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                                 hipStreamCaptureModeRelaxed};
      Graph(step, kModes[what]);
      return;
    }
    if (what > 12) {  // launches: they go on beside a global capture
      Launch(stream_, step, 100 + lane_.Random(500));
      values_[0].Step(values_[1], step);
      return;
    }
    const std::shared_lock lock(captures);
    switch (what) {
      case 2:
        CALL(lane_, hipMemcpyAsync(values_[1].device, values_[0].device, differential::kBytes, hipMemcpyDeviceToDevice,
                                   stream_));
        values_[1].model = values_[0].model;
        break;
      case 3:
        CALL(lane_, hipMemsetAsync(values_[1].device, static_cast<int>(step), differential::kBytes, stream_));
        values_[1].Fill(static_cast<unsigned char>(step));
        break;
      case 4:
        CALL(lane_, hipStreamAddCallback(stream_, Count, &called_, 0));
        ++wanted_;
        break;
      case 5:
        CALL(lane_, hipEventRecord(event_, stream_));
        CALL(lane_, hipEventSynchronize(event_));
        CALL(lane_, hipEventQuery(event_));
        break;
      case 6:
        Drain();
        CALL(lane_, hipStreamQuery(stream_));
        break;
      case 7:  // a kernel on the other stream, behind this one, and back
        CALL(lane_, hipEventRecord(event_, stream_));
        CALL(lane_, hipStreamWaitEvent(side_, event_, 0));
        Launch(side_, step, 200);
        values_[0].Step(values_[1], step);
        CALL(lane_, hipEventRecord(event_, side_));
        CALL(lane_, hipStreamWaitEvent(stream_, event_, 0));
        break;
      case 8:
        Drain();
        Unmake();
        Make();
        break;
      case 9:
        Drain();
        values_[0].Check(lane_, "in between");
        break;
      case 10:
        EITHER(lane_, "the work may be done", hipStreamQuery(stream_), hipSuccess, hipErrorNotReady);
        break;
      case 11:
        CALL(lane_, hipStreamWaitEvent(stream_, nullptr, 0));
        break;  // an error, taken by its thread alone
      default: {
        void* memory = nullptr;
        CALL(lane_, hipMalloc(&memory, 4096));
        CALL(lane_, hipFree(memory));
        break;
      }
    }
  }

  void Graph(unsigned step, hipStreamCaptureMode mode) {
    hipGraph_t graph = nullptr;
    hipGraphExec_t exec = nullptr;
    CALL(lane_, hipStreamBeginCapture(stream_, mode));
    for (unsigned kernel = 0; kernel < 3; ++kernel)
      LAUNCH(lane_, scale_add_in_graph<<<2, 128, 0, stream_>>>(values_[0].device, values_[1].device, step + kernel,
                                                               differential::kCount, 150));
    CALL(lane_, hipStreamEndCapture(stream_, &graph));
    CALL(lane_, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    for (int launch = 0; launch < 2; ++launch) {
      CALL(lane_, hipGraphLaunch(exec, stream_));
      for (unsigned kernel = 0; kernel < 3; ++kernel)
        values_[0].Step(values_[1], step + kernel);
    }
    CALL(lane_, hipStreamSynchronize(stream_));
    CALL(lane_, hipGraphExecDestroy(exec));
    CALL(lane_, hipGraphDestroy(graph));
  }

  Lane lane_;
  const unsigned me_;
  const int device_;
  hipStream_t stream_ = nullptr, side_ = nullptr;
  hipEvent_t event_ = nullptr;
  differential::Values values_[2];
  std::atomic<unsigned> called_ = 0;
  unsigned wanted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  // 5.2.3 loads code with the first launch, and crashes if two threads make it at the same time.
  for (int device = 0; device < run.devices; ++device) {
    hipFuncAttributes attributes;
    CALL(run.main, hipSetDevice(device));
    CALL(run.main, hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&scale_add)));
  }
  std::vector<std::unique_ptr<Thread>> workers;
  std::vector<std::thread> threads;
  for (unsigned me = 0; me < kThreads; ++me) {
    workers.push_back(std::make_unique<Thread>(run, me, static_cast<int>(me) % run.devices));
    threads.emplace_back(&Thread::Work, workers.back().get(), 60 * run.rounds);
  }
  for (std::thread& thread : threads)
    thread.join();
  return run.End();
}
