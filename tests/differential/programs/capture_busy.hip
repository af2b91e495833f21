// Captures of streams with work in flight, in each mode, by two threads in turn, while the other thread works on
// streams of its own. A capture stays open for a while, so that late calls of the shim (a marker behind a quiet stream,
// a query) happen during it: on the stream on which it began, on one that joined it through an event, or on neither.
#include "values.h"
#include "worker.h"

using differential::Lane;

namespace {

constexpr hipStreamCaptureMode kModes[] = {hipStreamCaptureModeRelaxed, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeGlobal};
constexpr useconds_t kQuietUs = 1500;  // longer than the shim waits before it looks after a stream by itself

// The objects of one thread. The two streams of a capture are made for it, because in 5.2.3 a stream that joined a
// capture cannot be used afterwards.
struct Streams {
  hipStream_t first, taken_in, beside;
  hipEvent_t fork, join;
  differential::Values values, aside, others;

  void Make(Lane& lane) {
    CALL(lane, hipStreamCreateWithFlags(&beside, hipStreamNonBlocking));
    for (hipEvent_t* event : {&fork, &join})
      CALL(lane, hipEventCreateWithFlags(event, hipEventDisableTiming));
    for (differential::Values* one : {&values, &aside, &others})
      one->Make(lane);
  }

  void Launch(Lane& lane, hipStream_t stream, differential::Values& of, differential::Value step, unsigned micros) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(of.device, of.device, step, differential::kCount, micros));
    of.Step(of, step);
  }

  void Capture(Lane& lane, hipStreamCaptureMode mode, differential::Worker& worker, Lane& other, Streams& theirs) {
    for (hipStream_t* stream : {&first, &taken_in})
      CALL(lane, hipStreamCreateWithFlags(stream, hipStreamNonBlocking));
    Launch(lane, first, values, 1, 2000);
    Launch(lane, taken_in, aside, 2, 500 + lane.Random(2000));
    CALL(lane, hipStreamBeginCapture(first, mode));
    usleep(kQuietUs);
    CALL(lane, hipEventRecord(fork, first));
    CALL(lane, hipStreamWaitEvent(taken_in, fork, 0));
    usleep(kQuietUs);
    Launch(lane, taken_in, aside, 3, 200);
    Launch(lane, first, values, 4, 200);
    worker.Do([&] {
      for (unsigned step = 0; step < 3; ++step)
        theirs.Launch(other, theirs.beside, theirs.others, step, 300);
    });
    usleep(kQuietUs);
    CALL(lane, hipEventRecord(join, taken_in));
    CALL(lane, hipStreamWaitEvent(first, join, 0));
    Launch(lane, first, values, 5, 200);  // 5.2.3 calls a join unjoined where nothing follows it
    hipGraph_t graph = nullptr;
    hipGraphExec_t exec = nullptr;
    CALL(lane, hipStreamEndCapture(first, &graph));
    CALL(lane, hipStreamSynchronize(first));
    CALL(lane, hipStreamSynchronize(taken_in));
    CALL(lane, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CALL(lane, hipGraphLaunch(exec, first));
    CALL(lane, hipStreamSynchronize(first));
    CALL(lane, hipGraphExecDestroy(exec));
    CALL(lane, hipGraphDestroy(graph));
    for (const hipStream_t stream : {first, taken_in})
      CALL(lane, hipStreamDestroy(stream));
  }

  void Free(Lane& lane) {
    CALL(lane, hipStreamSynchronize(beside));
    for (differential::Values* one : {&values, &aside, &others}) {
      one->Check(lane, "after all captures");
      one->Free(lane);
    }
    CALL(lane, hipStreamDestroy(beside));
    for (const hipEvent_t event : {fork, join})
      CALL(lane, hipEventDestroy(event));
  }
};

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane other = run.MakeLane("other");
  for (int device = 0; device < run.devices; ++device) {
    differential::Worker worker;
    Streams ours, theirs;
    CALL(run.main, hipSetDevice(device));
    worker.Do([&] { CALL(other, hipSetDevice(device)); });
    ours.Make(run.main);
    worker.Do([&] { theirs.Make(other); });
    for (unsigned round = 0; round < run.rounds; ++round) {
      for (const hipStreamCaptureMode mode : kModes)
        ours.Capture(run.main, mode, worker, other, theirs);
    }
    ours.Free(run.main);
    worker.Do([&] { theirs.Free(other); });
  }
  return run.End();
}
