// Objects that are destroyed while in use, by the thread that works with them and by another one: streams with work in
// flight, events that are recorded and not reached, memory that kernels still write, the device itself. Also while
// held: a call that destroys needs no open gate.
//
// Destroyed objects are not used again, because ROCm 5.2.3 has freed them. The last kernels' results are read after a
// call that waits for them.
// Now and then wrong with HIP 6.4: one launch of a thread is lost while another thread destroys streams, natively, too
// It calls hipDevicePrimaryCtxReset, which is deprecated from ROCm 6 on and still there.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Value;
using differential::Values;

namespace {

constexpr int kStreams = 6;

struct World {
  Run* run;
  Values values, other;

  // Ordered behind each other by an event, so that the values are the same whatever stream each launch is on.
  void Launch(Lane& lane, hipStream_t stream, std::uint64_t micros) {
    const Value step = lane.Random(1000);
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, other.device, step, differential::kCount, micros));
    values.Step(other, step);
  }
  std::uint64_t Micros(Lane& lane) { return 100 + 200 * lane.Random(8); }
};

hipStream_t MakeStream(Lane& lane, int kind) {
  hipStream_t stream = nullptr;
  if (kind == 0) CALL(lane, hipStreamCreate(&stream));
  if (kind == 1) CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  if (kind == 2) CALL(lane, hipStreamCreateWithPriority(&stream, hipStreamDefault, 0));
  return stream;
}

// Each stream waits for the one before it, and is destroyed when the next one has its work, or at the end.
void Streams(World& w, bool is_held) {
  Lane& lane = w.run->main;
  std::vector<hipStream_t> streams;
  hipEvent_t behind = nullptr;
  for (int i = 0; i < kStreams; ++i) {
    hipStream_t stream = MakeStream(lane, static_cast<int>(lane.Random(3)));
    if (behind != nullptr) {
      CALL(lane, hipStreamWaitEvent(stream, behind, 0));
      // The event is not reached yet; the stream waits for it all the same.
      CALL(lane, hipEventDestroy(behind));
    }
    for (unsigned n = 1 + lane.Random(3); n > 0; --n)
      w.Launch(lane, stream, w.Micros(lane));
    CALL(lane, hipEventCreateWithFlags(&behind, lane.Random(2) == 0 ? hipEventDefault : hipEventDisableTiming));
    CALL(lane, hipEventRecord(behind, stream));
    streams.push_back(stream);
    if (!is_held && lane.Random(2) == 0) {
      CALL(lane, hipStreamDestroy(streams.front()));
      streams.erase(streams.begin());
    }
  }
  // Held, everything that was launched before is in flight or done; nothing of this may wait for the gate.
  if (is_held) w.run->Ask("hold");
  for (hipStream_t stream : streams) {
    if (lane.Random(2) == 0) {
      CALL(lane, hipStreamDestroy(stream));
    } else {
      Lane other_lane = w.run->MakeLane("destroyer");
      std::thread([&] { CALL(other_lane, hipStreamDestroy(stream)); }).join();
    }
  }
  CALL(lane, hipEventSynchronize(behind));
  CALL(lane, hipEventQuery(behind));
  CALL(lane, hipEventDestroy(behind));
  CALL(lane, hipDeviceSynchronize());
  if (is_held) w.run->Ask("release");
  w.values.Check(lane, "values after the streams");
}

// A thread launches on one stream after the other and hands each to a thread that destroys it, while more are launched
// on.
void StreamsOfAnotherThread(World& w) {
  Run& run = *w.run;
  constexpr int kCount = 8;
  std::atomic<hipStream_t> handed[kCount] = {};
  Lane launcher = run.MakeLane("launcher"), destroyer = run.MakeLane("destroyer");
  std::thread destroys([&] {
    for (auto& one : handed) {
      while (one.load() == nullptr)
        std::this_thread::yield();
      CALL(destroyer, hipStreamDestroy(one.load()));
    }
  });
  hipEvent_t behind = nullptr;
  CALL(launcher, hipEventCreateWithFlags(&behind, hipEventDisableTiming));
  for (int i = 0; i < kCount; ++i) {
    hipStream_t stream = MakeStream(launcher, i % 3);
    if (i > 0) CALL(launcher, hipStreamWaitEvent(stream, behind, 0));
    w.Launch(launcher, stream, w.Micros(launcher));
    CALL(launcher, hipEventRecord(behind, stream));
    handed[i].store(stream);
  }
  destroys.join();
  CALL(launcher, hipEventSynchronize(behind));
  CALL(launcher, hipEventDestroy(behind));
  w.values.Check(launcher, "values after both threads");
}

// Memory that kernels in flight write, freed: that waits for them, so a query finds nothing left.
void Memory(World& w) {
  Lane& lane = w.run->main;
  hipStream_t stream = MakeStream(lane, 0);
  for (int i = 0; i < 3; ++i) {
    Value* gone = nullptr;
    CALL(lane, hipMalloc(&gone, differential::kBytes));
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(gone, w.other.device, 1, differential::kCount, w.Micros(lane)));
    w.Launch(lane, stream, w.Micros(lane));
    CALL(lane, hipFree(gone));
    CALL(lane, hipStreamQuery(stream));
    Value* pinned = nullptr;
    CALL(lane, hipHostMalloc(reinterpret_cast<void**>(&pinned), differential::kBytes, 0));
    CALL(lane, hipMemcpyAsync(pinned, w.values.device, differential::kBytes, hipMemcpyDeviceToHost, stream));
    CALL(lane, hipHostFree(pinned));
    CALL(lane, hipStreamQuery(stream));
  }
  CALL(lane, hipStreamDestroy(stream));
  w.values.Check(lane, "values after the memory");
}

// The device is reset with work in flight, by this thread or another, and used again with everything made anew.
void Reset(World& w, unsigned how) {
  Lane& lane = w.run->main;
  hipStream_t streams[3];
  hipEvent_t event = nullptr;
  CALL(lane, hipEventCreate(&event));
  for (hipStream_t& stream : streams) {
    stream = MakeStream(lane, static_cast<int>(lane.Random(3)));
    LAUNCH(lane,
           scale_add<<<2, 128, 0, stream>>>(w.values.device, w.other.device, 1, differential::kCount, w.Micros(lane)));
    CALL(lane, hipEventRecord(event, stream));
  }
  const bool is_held = how == 2;
  if (is_held) w.run->Ask("hold");
  // Work that is in flight when the device is reset may be cut off: what it wrote is not looked at.
  if (how == 0) CALL(lane, hipDeviceSynchronize());
  if (how == 1) {
    Lane other_lane = w.run->MakeLane("resetter");
    std::thread([&] { CALL(other_lane, hipDeviceReset()); }).join();
  } else {
    CALL(lane, hipDeviceReset());
  }
  if (is_held) w.run->Ask("release");
  int device = -1;
  CALL(lane, hipGetDevice(&device));
  lane.Number("current device", device);
  w.values = Values{};
  w.other = Values{};
  w.values.Make(lane);
  w.other.Make(lane);
  for (int kind = 0; kind < 3; ++kind) {
    hipStream_t stream = MakeStream(lane, kind);
    for (int i = 0; i < 3; ++i)
      w.Launch(lane, stream, w.Micros(lane));
    CALL(lane, hipStreamSynchronize(stream));
    CALL(lane, hipStreamDestroy(stream));
  }
  w.Launch(lane, nullptr, w.Micros(lane));
  CALL(lane, hipStreamSynchronize(nullptr));
  w.values.Check(lane, "values after the reset");
}

// hipDevicePrimaryCtxReset reports success and does nothing (ROCm 5.2.3 by experiment, later ones by their sources):
// work in flight, a capture and streams continue.
void PrimaryContext(World& w) {
  Lane& lane = w.run->main;
  hipStream_t stream = MakeStream(lane, 1);
  w.Launch(lane, stream, w.Micros(lane));
  CALL(lane, hipDevicePrimaryCtxReset(0));
  w.Launch(lane, stream, w.Micros(lane));
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  CALL(lane, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  w.Launch(lane, stream, w.Micros(lane));
  CALL(lane, hipDevicePrimaryCtxReset(0));
  w.Launch(lane, stream, w.Micros(lane));
  CALL(lane, hipStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  CALL(lane, hipGraphGetNodes(graph, nullptr, &nodes));
  lane.Number("nodes of the graph", nodes);
  CALL(lane, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  CALL(lane, hipGraphLaunch(exec, stream));
  CALL(lane, hipStreamSynchronize(stream));
  CALL(lane, hipGraphExecDestroy(exec));
  CALL(lane, hipGraphDestroy(graph));
  CALL(lane, hipStreamDestroy(stream));
  w.values.Check(lane, "values after the context");
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  World w{&run, {}, {}};
  w.values.Make(run.main);
  w.other.Make(run.main);
  for (unsigned round = 0; round < run.rounds; ++round) {
    Streams(w, false);
    Streams(w, true);
    StreamsOfAnotherThread(w);
    Memory(w);
    PrimaryContext(w);
    for (unsigned how = 0; how < 3; ++how)
      Reset(w, how);
  }
  return run.End();
}
