// Finished work stays finished: after a synchronisation or a successful query, a stream and its events are "ready", for
// any thread, at any time, whatever the shim does. A marker that the shim recorded late would show as "not ready".
#include <chrono>
#include <thread>

#include "values.h"

using differential::Lane;

namespace {

// Synchronises a stream in one of the possible ways, after a pause in which the shim's agent marks it.
void Settled(const differential::Run& run, unsigned me, int device) {
  Lane lane = run.MakeLane("thread " + std::to_string(me) + " of device " + std::to_string(device));
  hipStream_t stream;
  hipEvent_t event;
  differential::Values values;
  CALL(lane, hipSetDevice(device));
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  values.Make(lane);
  for (unsigned step = 0; step < 50 * run.rounds; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount,
                                                  20 + lane.Random(200)));
    values.Step(values, step);
    // An event right behind the kernel has the agent's marker behind it; the agent marks what has been quiet for 80 us,
    // and looks every 60 us.
    const unsigned how = lane.Random(4);
    if (how == 3) CALL(lane, hipEventRecord(event, stream));
    std::this_thread::sleep_for(std::chrono::microseconds(lane.Random(300)));
    switch (how) {
      case 0:
        CALL(lane, hipStreamSynchronize(stream));
        break;
      case 1:
      case 3:
        if (how == 1) CALL(lane, hipEventRecord(event, stream));
        CALL(lane, hipEventSynchronize(event));
        CALL(lane, hipEventQuery(event));
        break;
      default:
        while (hipStreamQuery(stream) == hipErrorNotReady) {  // how often depends on the machine
        }
        break;
    }
    CALL(lane, hipStreamQuery(stream));
    std::this_thread::sleep_for(std::chrono::microseconds(lane.Random(100)));
    CALL(lane, hipStreamQuery(stream));
  }
  values.Check(lane, "values");
  values.Free(lane);
  CALL(lane, hipStreamDestroy(stream));
  CALL(lane, hipEventDestroy(event));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  // 5.2.3 loads code with the first launch, and crashes if two threads make it at the same time.
  for (int device = 0; device < run.devices; ++device) {
    hipFuncAttributes attributes;
    CALL(run.main, hipSetDevice(device));
    CALL(run.main, hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&scale_add)));
  }
  std::vector<std::thread> threads;
  for (unsigned me = 0; me < 3; ++me)
    threads.emplace_back(Settled, std::cref(run), me, static_cast<int>(me) % run.devices);
  for (std::thread& thread : threads)
    thread.join();
  return run.End();
}
