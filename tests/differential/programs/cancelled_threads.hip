// Threads that are cancelled while they launch. A held thread waits at the gate, which the program cannot know: its
// work is submitted, as without xschedd, and it ends at its own next cancellation point. It writes nothing after its
// first launch, because a write is such a point.
#include <pthread.h>

#include <atomic>

#include "values.h"

using differential::Lane;

namespace {

constexpr unsigned kMaxLaunches = 8;

// A thread that makes its launches and then waits to be cancelled.
struct Cancelled {
  Lane lane;
  int device;
  unsigned launches;
  bool is_asynchronous;
  hipStream_t stream = nullptr;
  differential::Values values;
  hipError_t errors[kMaxLaunches] = {};
  std::atomic<bool> is_started{false}, is_done{false};

  // With asynchronous cancellation it may end between two launches, so it makes one.
  Cancelled(const differential::Run& run, const std::string& name, int of, bool asynchronous)
      : lane(run.MakeLane(name)),
        device(of),
        launches(asynchronous ? 1 : 1 + lane.Random(kMaxLaunches)),
        is_asynchronous(asynchronous) {}

  void Work() {
    CALL(lane, hipSetDevice(device));
    if (is_asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    is_started = true;
    for (unsigned launch = 0; launch < launches; ++launch) {
      scale_add<<<2, 128, 0, stream>>>(values.device, values.device, launch, differential::kCount, 1500);
      if (!is_asynchronous) errors[launch] = hipGetLastError();
    }
    is_done = true;
    for (;;)
      pause();
  }
};

void* Work(void* data) {
  static_cast<Cancelled*>(data)->Work();
  return nullptr;
}

// Waits until the launches are made, or long enough for a held thread to reach the gate: a program cannot see that it
// is held. Asynchronous cancellation must wait for the launches, because the runtime does not support it inside a call.
void WaitAWhile(const Cancelled& cancelled) {
  for (int poll = 0; !cancelled.is_done && (cancelled.is_asynchronous || poll < 300); ++poll)
    usleep(100);
}

void Cancel(differential::Run& run, Cancelled& cancelled) {
  Lane& lane = run.main;
  CALL(lane, hipStreamCreateWithFlags(&cancelled.stream, hipStreamNonBlocking));
  cancelled.values.Make(lane);
  const bool is_held = run.Ask("hold");
  pthread_t thread{};
  const int made = pthread_create(&thread, nullptr, Work, &cancelled);
  while (made == 0 && !cancelled.is_started)
    usleep(100);
  CHECK(lane, made == 0);  // written now: the thread, too, has written what it does
  if (!is_held || !run.Ask("held")) WaitAWhile(cancelled);
  CHECK(lane, pthread_cancel(thread) == 0);
  run.Ask("release");
  void* result = nullptr;
  CHECK(lane, pthread_join(thread, &result) == 0);
  CHECK(lane, result == PTHREAD_CANCELED);

  for (unsigned launch = 0; launch < cancelled.launches; ++launch) {
    cancelled.values.Step(cancelled.values, launch);
    cancelled.lane.Error("launch", cancelled.errors[launch]);
  }
  // It leaves nothing locked: other threads continue, on its stream, too.
  LAUNCH(lane, scale_add<<<2, 128, 0, cancelled.stream>>>(cancelled.values.device, cancelled.values.device, 7,
                                                          differential::kCount, 200));
  cancelled.values.Step(cancelled.values, 7);
  CALL(lane, hipStreamSynchronize(cancelled.stream));
  cancelled.values.Check(lane, "behind a cancelled thread");
  cancelled.values.Free(lane);
  CALL(lane, hipStreamDestroy(cancelled.stream));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  unsigned threads = 0;
  for (int device = 0; device < run.devices; ++device) {
    CALL(run.main, hipSetDevice(device));
    // Code is loaded with the first launch: not by a thread that is cancelled meanwhile.
    hipFuncAttributes attributes;
    CALL(run.main, hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&scale_add)));
    for (unsigned step = 0; step < 6 * run.rounds; ++step) {
      Cancelled cancelled(run, "thread " + std::to_string(++threads), device, step % 2 == 1);
      Cancel(run, cancelled);
    }
  }
  return run.End();
}
