// Streams of different priorities, which the shim schedules against each other: a less important one's submissions wait
// while a more important one has work. In each part the more important stream waits for the less important one, or for
// the thread that submits to it: natively all work ends.
//
// Three streams at a time in one thread: each has a hardware queue of its own then.
#define XSCHEDD_DLSYM
#include <atomic>
#include <memory>
#include <thread>

#include "client-shim/include/xschedd.h"
#include "values.h"

using differential::Lane;

namespace {

struct Pair {
  hipStream_t high = nullptr, low = nullptr;

  // `flags`: of both. By the runtime's priority, or by what the C API says of two that are equal for the runtime.
  void Make(Lane& lane, unsigned flags, bool by_runtime) {
    CALL(lane, hipStreamCreateWithPriority(&high, flags, by_runtime ? -1 : 0));
    CALL(lane, hipStreamCreateWithFlags(&low, flags));
    // What these return depends on the shim.
    if (!by_runtime) xschedd_set_stream_priority(high, 40);
  }
  void Free(Lane& lane) {
    CALL(lane, hipStreamSynchronize(high));
    CALL(lane, hipStreamSynchronize(low));
    CALL(lane, hipStreamDestroy(high));
    CALL(lane, hipStreamDestroy(low));
  }
};

// One order over both, from stream to stream by events, in both directions; now and then a query or a synchronisation.
void Events(Lane& lane, const Pair& pair, differential::Ordered& order) {
  hipEvent_t event;
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  hipStream_t last = pair.high;
  for (int step = 0; step < 24; ++step) {
    const hipStream_t next = lane.Random(2) != 0 ? pair.high : pair.low;
    if (next != last) {
      CALL(lane, hipEventRecord(event, last));
      CALL(lane, hipStreamWaitEvent(next, event, 0));
    }
    order.Append(lane, next, 100 + lane.Random(600));
    last = next;
    if (lane.Random(8) == 0) CALL(lane, hipStreamSynchronize(last));
  }
  CALL(lane, hipStreamSynchronize(last));
  order.Check(lane, "by events");
  CALL(lane, hipEventDestroy(event));
}

// One stream waits for a value that is written behind work of the other, which is submitted later.
void Written(Lane& lane, hipStream_t waits, hipStream_t writes, differential::Ordered& order, std::uint64_t* word,
             bool by_host) {
  *word = 0;
  CALL(lane, hipStreamWaitValue64(waits, word, 1, hipStreamWaitValueGte, ~std::uint64_t{0}));
  differential::Ordered behind;
  behind.Make(lane);
  for (int step = 0; step < 6; ++step)
    behind.Append(lane, waits, 200);
  for (int step = 0; step < 16; ++step)
    order.Append(lane, writes, 200 + lane.Random(200));
  if (by_host) {
    CALL(lane, hipStreamSynchronize(writes));
    CALL(lane, hipStreamQuery(waits));
    *word = 1;
  } else {
    CALL(lane, hipStreamWriteValue64(writes, word, 1, 0));
  }
  CALL(lane, hipStreamSynchronize(waits));
  CALL(lane, hipStreamSynchronize(writes));
  order.Check(lane, "before the value");
  behind.Check(lane, "behind the value");
  behind.Free(lane);
}

// The legacy default stream between blocking streams of both kinds.
void Legacy(Lane& lane, differential::Ordered& order) {
  Pair pair;
  pair.Make(lane, 0, lane.Random(2) != 0);
  const hipStream_t streams[] = {pair.high, pair.low, nullptr};
  unsigned last = 2;
  for (int step = 0; step < 24; ++step) {
    const unsigned next = last == 2 ? lane.Random(3) : lane.Random(2) != 0 ? last : 2;
    order.Append(lane, streams[next], 100 + lane.Random(500));
    last = next;
  }
  CALL(lane, hipDeviceSynchronize());
  order.Check(lane, "beside the default stream");
  pair.Free(lane);
}

// A graph launched on either, its kernels captured on the less important one.
void Graphs(Lane& lane, const Pair& pair, differential::Values* values) {
  hipGraph_t graph;
  hipGraphExec_t exec;
  LAUNCH(lane, scale_add<<<2, 128, 0, pair.high>>>(values[0].device, values[1].device, 1, differential::kCount, 3000));
  values[0].Step(values[1], 1);
  CALL(lane, hipStreamBeginCapture(pair.low, hipStreamCaptureModeThreadLocal));
  for (unsigned kernel = 0; kernel < 4; ++kernel)
    LAUNCH(lane, scale_add_in_graph<<<2, 128, 0, pair.low>>>(values[2].device, values[1].device, kernel,
                                                             differential::kCount, 200));
  CALL(lane, hipStreamEndCapture(pair.low, &graph));
  CALL(lane, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < 6; ++launch) {
    const hipStream_t stream = launch % 3 == 0 ? pair.high : pair.low;
    CALL(lane, hipGraphLaunch(exec, stream));
    CALL(lane, hipStreamSynchronize(stream));
    for (unsigned kernel = 0; kernel < 4; ++kernel)
      values[2].Step(values[1], kernel);
  }
  CALL(lane, hipStreamSynchronize(pair.high));
  values[0].Check(lane, "beside graphs");
  values[2].Check(lane, "of graphs");
  CALL(lane, hipGraphExecDestroy(exec));
  CALL(lane, hipGraphDestroy(graph));
}

// A thread with streams of its own, whose priorities it changes while the others work.
void Thread(const differential::Run& run, unsigned me, int device, unsigned steps) {
  Lane lane = run.MakeLane("thread " + std::to_string(me) + " of device " + std::to_string(device));
  CALL(lane, hipSetDevice(device));
  differential::Ordered order;
  order.Make(lane);
  Pair pair;
  pair.Make(lane, hipStreamNonBlocking, me % 2 == 0);
  for (unsigned step = 0; step < steps; ++step) {
    switch (lane.Random(6)) {
      case 0:
        xschedd_set_stream_priority(pair.low, static_cast<int>(lane.Random(100)) - 50);
        break;
      case 1:
        if (me == 0) xschedd_schedule_streams(static_cast<int>(lane.Random(3)));
        break;
      case 2:
        pair.Free(lane);
        pair.Make(lane, hipStreamNonBlocking, lane.Random(2) != 0);
        break;
      default:
        Events(lane, pair, order);
        break;
    }
  }
  pair.Free(lane);
  order.Free(lane);
}

// Whether the shim has made a thread wait for a stream of its own process; true without a shim.
bool WasHeld() {
  xschedd_status status{};
  status.size = sizeof status;
  return xschedd_get_status(&status) != XSCHEDD_OK || status.streams_held_ns > 0;
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  xschedd_schedule_streams(1);
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      differential::Ordered order;
      differential::Values values[3];
      std::uint64_t* word;
      order.Make(lane);
      for (differential::Values& one : values)
        one.Make(lane);
      CALL(lane, hipExtMallocWithFlags(reinterpret_cast<void**>(&word), sizeof *word, hipMallocSignalMemory));
      Pair pair;
      pair.Make(lane, hipStreamNonBlocking, lane.Random(2) != 0);
      Events(lane, pair, order);
      for (const bool by_host : {false, true}) {
        Written(lane, pair.high, pair.low, order, word, by_host);
        Written(lane, pair.low, pair.high, order, word, by_host);
      }
      Graphs(lane, pair, values);
      pair.Free(lane);
      Legacy(lane, order);
      CALL(lane, hipFree(word));
      order.Free(lane);
      for (differential::Values& one : values)
        one.Free(lane);

      std::vector<std::thread> threads;
      for (unsigned me = 0; me < 3; ++me)
        threads.emplace_back(Thread, std::cref(run), me + 3 * round, device, 6u);
      for (std::thread& thread : threads)
        thread.join();
      xschedd_schedule_streams(1);
    }
  }
  CHECK(lane, WasHeld());
  return run.End();
}
