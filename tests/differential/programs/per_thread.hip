// Compiled with -fgpu-default-stream=per-thread: each thread has a default stream of its own, which the compiler and
// the headers reach by the *_spt functions. Threads work on theirs, hand a token from stream to stream by events, and
// the main thread uses the explicit handle hipStreamPerThread beside them.
//
// Left out: an event on a null stream, because 5.2 has no hipEventRecord_spt, and
// a query while another thread frees memory: 5.2.3's hipFree has the device's null stream wait for all streams, and
// a query first has its stream wait for the null stream, so that one which has finished is "not ready", without
// xschedd, too.
#include <thread>

#include "turns.h"
#include "values.h"

// The headers of 5.2 turn it into hipEventRecord_spt, which its library does not have.
#undef hipEventRecord
extern "C" hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);

using differential::Lane;

namespace {

constexpr unsigned kThreads = 4;
constexpr unsigned kTurns = 5;  // of each thread in a round

struct Shared {
  differential::Turns turns;
  differential::Ordered order;
  hipEvent_t passed[kThreads];
};

void Work(const differential::Run& run, unsigned me, unsigned round, int device, Shared& shared) {
  Lane lane = run.MakeLane("thread " + std::to_string(me) + " of device " + std::to_string(device) + " in round " +
                           std::to_string(round));
  CALL(lane, hipSetDevice(device));
  differential::Values values[2];
  for (differential::Values& one : values)
    one.Make(lane);
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    for (int step = 0; step < 5; ++step) {
      switch (lane.Random(6)) {
        case 0:
          CALL(lane, hipMemcpyAsync(values[1].device, values[0].device, differential::kBytes, hipMemcpyDeviceToDevice,
                                    nullptr));
          values[1].model = values[0].model;
          break;
        case 1:
          CALL(lane, hipMemset(values[1].device, step, differential::kBytes));
          values[1].Fill(static_cast<unsigned char>(step));
          break;
        case 2:
          CALL(lane, hipStreamSynchronize(nullptr));
          CALL(lane, hipStreamQuery(nullptr));
          CALL(lane, hipStreamQuery(hipStreamPerThread));
          break;
        default:
          LAUNCH(lane, scale_add<<<2, 128>>>(values[0].device, values[1].device, step, differential::kCount,
                                             100 + lane.Random(600)));
          values[0].Step(values[1], step);
          break;
      }
    }
    // The token: a kernel on this thread's stream behind the last one on another's, ordered by an event alone.
    shared.turns.WaitFor(turn * kThreads + me);
    if (turn + me > 0) CALL(lane, hipStreamWaitEvent(nullptr, shared.passed[(me + kThreads - 1) % kThreads], 0));
    shared.order.Append(lane, nullptr, 100 + lane.Random(400));
    CALL(lane, hipEventRecord(shared.passed[me], hipStreamPerThread));
    shared.turns.Next();
  }
  values[0].Check(lane, "values");
  unsigned flags = 77;
  int priority = 77;
  CALL(lane, hipStreamGetFlags(nullptr, &flags));
  CALL(lane, hipStreamGetPriority(nullptr, &priority));
  lane.Number("flags", flags);
  lane.Number("priority", priority);
  CALL(lane, hipStreamSynchronize(hipStreamPerThread));
  // Not while another thread may still query: see above.
  shared.turns.WaitFor(kTurns * kThreads);
  for (differential::Values& one : values)
    one.Free(lane);
}

// The handle by hand, from a thread that has launched nothing by the null stream.
void Handle(Lane& lane) {
  differential::Values values;
  values.Make(lane);
  for (unsigned step = 0; step < 4; ++step) {
    LAUNCH(lane,
           scale_add<<<2, 128, 0, hipStreamPerThread>>>(values.device, values.device, step, differential::kCount, 300));
    values.Step(values, step);
  }
  void* device = values.device;
  differential::Value step = 9;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros = 200;
  void* arguments[] = {&device, &device, &step, &count, &micros};
  CALL(lane, hipLaunchCooperativeKernel(reinterpret_cast<void*>(scale_add), dim3(2), dim3(128), arguments, 0, nullptr));
  values.Step(values, step);
  CALL(lane, hipStreamSynchronize(hipStreamPerThread));
  values.Check(lane, "by the handle");
  values.Free(lane);
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  // 5.2.3 loads code with the first launch, and crashes if two threads make it at the same time.
  for (int device = 0; device < run.devices; ++device) {
    hipFuncAttributes attributes;
    CALL(lane, hipSetDevice(device));
    CALL(lane, hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&scale_add)));
  }
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      Shared shared;
      shared.order.Make(lane);
      for (hipEvent_t& event : shared.passed)
        CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
      std::vector<std::thread> threads;
      for (unsigned me = 0; me < kThreads; ++me)
        threads.emplace_back(Work, std::cref(run), me, round, device, std::ref(shared));
      for (std::thread& thread : threads)
        thread.join();
      shared.order.Check(lane, "the token");
      Handle(lane);
      for (const hipEvent_t event : shared.passed)
        CALL(lane, hipEventDestroy(event));
      shared.order.Free(lane);
    }
  }
  return run.End();
}
