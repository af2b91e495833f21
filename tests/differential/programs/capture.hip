// Stream capture in its three modes: what is captured, which calls are forbidden meanwhile to the capturing thread and
// to another one, and captures that fail. Under a scheduler the shim must not be visible: no marker of its own in the
// graph, no query that ends the capture, no other error than the runtime's.
//
// Not with HIP 5.7, 6.4: it crashes natively, in 5.7 in hipStreamEndCapture by a thread that did not begin the capture
#include <string>

#include "values.h"
#include "worker.h"

using differential::Lane;

namespace {

constexpr hipStreamCaptureMode kModes[] = {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                                           hipStreamCaptureModeRelaxed};

void Status(Lane& lane, hipStream_t stream) {
  hipStreamCaptureStatus status{}, info{}, info2{};
  unsigned long long id = 0, id2 = 0;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* nodes = nullptr;
  std::size_t count = 77;
  CALL(lane, hipStreamIsCapturing(stream, &status));
  lane.Number("is capturing", status);
  CALL(lane, hipStreamGetCaptureInfo(stream, &info, &id));
  lane.Number("status", info);
  if (CALL(lane, hipStreamGetCaptureInfo_v2(stream, &info2, &id2, &graph, &nodes, &count)) == hipSuccess &&
      info2 == hipStreamCaptureStatusActive) {
    lane.Number("the same id", id == id2);
    lane.Null("graph", graph);
    lane.Number("dependencies", count);
  }
}

void Describe(Lane& lane, hipGraph_t graph) {
  std::size_t nodes = 0, roots = 0, edges = 0;
  CALL(lane, hipGraphGetNodes(graph, nullptr, &nodes));
  CALL(lane, hipGraphGetRootNodes(graph, nullptr, &roots));
  CALL(lane, hipGraphGetEdges(graph, nullptr, nullptr, &edges));
  lane.Number("nodes", nodes);
  lane.Number("roots", roots);
  lane.Number("edges", edges);
  std::vector<hipGraphNode_t> list(nodes);
  if (nodes > 0) CALL(lane, hipGraphGetNodes(graph, list.data(), &nodes));
  std::string types;
  for (const hipGraphNode_t node : list) {
    hipGraphNodeType type{};
    if (hipGraphNodeGetType(node, &type) == hipSuccess) types += " " + std::to_string(static_cast<int>(type));
  }
  lane.Note(("types:" + types).c_str());
}

// Ends the capture and writes its result; launches the graph if there is one, and destroys it. Whether it was launched.
bool End(Lane& lane, hipStream_t stream, unsigned launches) {
  hipGraph_t graph = nullptr;
  bool launched = false;
  if (CALL(lane, hipStreamEndCapture(stream, &graph)) == hipSuccess && graph != nullptr) {
    Describe(lane, graph);
    hipGraphExec_t exec = nullptr;
    if (launches > 0 && CALL(lane, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0)) == hipSuccess) {
      for (unsigned launch = 0; launch < launches; ++launch)
        launched = CALL(lane, hipGraphLaunch(exec, stream)) == hipSuccess;
      CALL(lane, hipStreamSynchronize(stream));
      CALL(lane, hipGraphExecDestroy(exec));
    }
    CALL(lane, hipGraphDestroy(graph));
  }
  Status(lane, stream);
  return launched;
}

// Kernels, copies and fills on two streams, forked and joined by events, while another thread works on a stream of its
// own all the time. The graph is launched several times.
void Captured(Lane& lane, hipStreamCaptureMode mode, differential::Worker& worker, Lane& other) {
  hipStream_t stream, side, elsewhere;
  hipEvent_t fork, join;
  differential::Values values[2], aside, others;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&side, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&elsewhere, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&fork, hipEventDisableTiming));
  CALL(lane, hipEventCreateWithFlags(&join, hipEventDisableTiming));
  for (differential::Values* one : {&values[0], &values[1], &aside, &others})
    one->Make(lane);

  Status(lane, stream);
  CALL(lane, hipStreamBeginCapture(stream, mode));
  std::vector<std::pair<int, unsigned>> steps;  // what a launch of the graph does, for the model
  bool forked = false;
  for (unsigned step = 0; step < 16; ++step) {
    worker.Do([&] {
      LAUNCH(other, scale_add<<<2, 128, 0, elsewhere>>>(others.device, others.device, step, differential::kCount, 300));
      others.Step(others, step);
    });
    const int what = static_cast<int>(lane.Random(5));
    switch (what) {
      case 0:
        CALL(lane,
             hipMemcpyAsync(values[1].device, values[0].device, differential::kBytes, hipMemcpyDeviceToDevice, stream));
        break;
      case 1:
        CALL(lane, hipMemsetAsync(values[1].device, static_cast<int>(step), differential::kBytes, stream));
        break;
      case 2:
        CALL(lane, hipEventRecord(fork, stream));
        CALL(lane, hipStreamWaitEvent(side, fork, 0));
        LAUNCH(lane, scale_add<<<2, 128, 0, side>>>(aside.device, aside.device, step, differential::kCount, 200));
        forked = true;
        break;
      default:
        LAUNCH(lane,
               scale_add<<<2, 128, 0, stream>>>(values[0].device, values[1].device, step, differential::kCount, 200));
        break;
    }
    steps.emplace_back(what, step);
    if (step % 5 == 0) {
      Status(lane, stream);
      Status(lane, side);
    }
  }
  if (forked) {
    CALL(lane, hipEventRecord(join, side));
    CALL(lane, hipStreamWaitEvent(stream, join, 0));
    // 5.2.3 calls a join unjoined where nothing follows it.
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values[0].device, aside.device, 0, differential::kCount, 200));
  }
  constexpr unsigned kLaunches = 3;
  for (unsigned launch = 0; launch < kLaunches; ++launch) {
    for (const auto& [what, step] : steps) {
      if (what == 0) values[1].model = values[0].model;
      if (what == 1) values[1].Fill(static_cast<unsigned char>(step));
      if (what == 2) aside.Step(aside, step);
      if (what > 2) values[0].Step(values[1], step);
    }
    if (forked) values[0].Step(aside, 0);
  }
  End(lane, stream, kLaunches);
  worker.Do([&] { CALL(other, hipStreamSynchronize(elsewhere)); });
  for (differential::Values* one : {&values[0], &values[1], &aside, &others}) {
    one->Check(lane, "captured");
    one->Free(lane);
  }
  for (const hipStream_t one : {stream, side, elsewhere})
    CALL(lane, hipStreamDestroy(one));
  CALL(lane, hipEventDestroy(fork));
  CALL(lane, hipEventDestroy(join));
}

// Calls of a thread during a capture, one in each capture. Some are forbidden, and end it.
struct Meanwhile {
  hipStream_t capturing, idle;
  hipEvent_t event;                    // recorded before, on the idle stream
  differential::Value *device, *host;  // not those of the captured kernel, which nothing here is ordered with

  static constexpr unsigned kKinds = 19;

  void Do(Lane& lane, unsigned what) const {
    void* pointer = nullptr;
    hipEvent_t made;
    hipStream_t made_stream;
    switch (what) {
      case 0:
        CALL(lane, hipStreamQuery(idle));
        break;
      case 1:
        CALL(lane, hipStreamSynchronize(idle));
        break;
      case 2:
        CALL(lane, hipEventQuery(event));
        break;
      case 3:
        CALL(lane, hipEventSynchronize(event));
        break;
      case 4:
        CALL(lane, hipDeviceSynchronize());
        break;
      case 5:
        if (CALL(lane, hipMalloc(&pointer, 4096)) == hipSuccess) CALL(lane, hipFree(pointer));
        break;
      case 6:
        CALL(lane, hipMemcpy(host, device, differential::kBytes, hipMemcpyDeviceToHost));
        break;
      case 7:
        CALL(lane, hipMemset(device, 3, differential::kBytes));
        break;
      case 8:
        LAUNCH(lane, scale_add<<<2, 128, 0, idle>>>(device, device, 1, differential::kCount, 100));
        break;
      case 9:
        LAUNCH(lane, scale_add<<<2, 128>>>(device, device, 2, differential::kCount, 100));
        break;
      case 10:
        CALL(lane, hipEventRecord(event, idle));
        break;
      case 11:
        CALL(lane, hipMemcpyAsync(host, device, differential::kBytes, hipMemcpyDeviceToHost, idle));
        break;
      case 12:
        CALL(lane, hipStreamQuery(capturing));
        break;
      case 13:
        CALL(lane, hipStreamSynchronize(capturing));
        break;
      case 14:
        if (CALL(lane, hipEventCreate(&made)) == hipSuccess) CALL(lane, hipEventDestroy(made));
        break;
      case 15:
        if (CALL(lane, hipStreamCreate(&made_stream)) == hipSuccess) CALL(lane, hipStreamDestroy(made_stream));
        break;
      case 16:
        if (CALL(lane, hipHostMalloc(&pointer, 4096, 0)) == hipSuccess) CALL(lane, hipHostFree(pointer));
        break;
      case 17:
        CALL(lane, hipStreamSynchronize(nullptr));
        break;
      default:
        CALL(lane, hipStreamQuery(nullptr));
        break;
    }
  }
};

void Forbidden(Lane& lane, hipStreamCaptureMode mode, differential::Worker& worker, Lane& other) {
  Meanwhile meanwhile{};
  CALL(lane, hipStreamCreateWithFlags(&meanwhile.capturing, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&meanwhile.idle, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&meanwhile.event, hipEventDisableTiming));
  differential::Values captured;
  captured.Make(lane);
  CALL(lane, hipMalloc(&meanwhile.device, differential::kBytes));
  CALL(lane, hipMemset(meanwhile.device, 0, differential::kBytes));
  CALL(lane, hipHostMalloc(&meanwhile.host, differential::kBytes, 0));
  for (unsigned what = 0; what < Meanwhile::kKinds; ++what) {
    for (const bool by_other : {false, true}) {
      // There is work before, so that the shim has a stream to check; and it has finished, so that queries have one
      // answer.
      LAUNCH(lane, scale_add<<<2, 128, 0, meanwhile.idle>>>(meanwhile.device, meanwhile.device, 1, differential::kCount,
                                                            100));
      CALL(lane, hipEventRecord(meanwhile.event, meanwhile.idle));
      CALL(lane, hipStreamSynchronize(meanwhile.idle));
      CALL(lane, hipStreamBeginCapture(meanwhile.capturing, mode));
      LAUNCH(lane, scale_add<<<2, 128, 0, meanwhile.capturing>>>(captured.device, captured.device, 1,
                                                                 differential::kCount, 100));
      if (by_other) {
        worker.Do([&] { meanwhile.Do(other, what); });
      } else {
        meanwhile.Do(lane, what);
      }
      Status(lane, meanwhile.capturing);
      // From HIP 6 on some of these calls invalidate the capture.
      if (End(lane, meanwhile.capturing, 1)) captured.Step(captured, 1);
      CALL(lane, hipDeviceSynchronize());
    }
  }
  CALL(lane, hipMemcpy(meanwhile.host, meanwhile.device, differential::kBytes, hipMemcpyDeviceToHost));
  lane.Data("after all of it", meanwhile.host, differential::kBytes);
  captured.Check(lane, "captured");  // each graph was launched once
  captured.Free(lane);
  CALL(lane, hipHostFree(meanwhile.host));
  CALL(lane, hipFree(meanwhile.device));
  CALL(lane, hipEventDestroy(meanwhile.event));
  CALL(lane, hipStreamDestroy(meanwhile.capturing));
  CALL(lane, hipStreamDestroy(meanwhile.idle));
}

// Captures that are begun or ended wrongly.
void Wrong(Lane& lane, hipStreamCaptureMode mode, differential::Worker& worker, Lane& other) {
  hipStream_t stream, side;
  hipEvent_t event;
  differential::Values values;
  hipGraph_t graph = nullptr;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&side, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  values.Make(lane);

  CALL(lane, hipStreamBeginCapture(nullptr, mode));
  CALL(lane, hipStreamBeginCapture(stream, static_cast<hipStreamCaptureMode>(9)));
  CALL(lane, hipStreamEndCapture(stream, &graph));  // none is open
  CALL(lane, hipStreamEndCapture(nullptr, &graph));

  // Begun twice; ended on another stream than it was begun on, and by a null pointer.
  CALL(lane, hipStreamBeginCapture(stream, mode));
  CALL(lane, hipStreamBeginCapture(stream, mode));
  LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, 1, differential::kCount, 100));
  CALL(lane, hipStreamEndCapture(side, &graph));
  CALL(lane, hipStreamEndCapture(stream, nullptr));
  End(lane, stream, 0);

  // Forked and ended on the fork; forked and never joined.
  CALL(lane, hipStreamBeginCapture(stream, mode));
  CALL(lane, hipEventRecord(event, stream));
  CALL(lane, hipStreamWaitEvent(side, event, 0));
  LAUNCH(lane, scale_add<<<2, 128, 0, side>>>(values.device, values.device, 1, differential::kCount, 100));
  CALL(lane, hipStreamEndCapture(side, &graph));
  Status(lane, side);
  End(lane, stream, 0);
  Status(lane, side);

  // Ended by another thread.
  CALL(lane, hipStreamBeginCapture(stream, mode));
  LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, 1, differential::kCount, 100));
  hipError_t ended = hipErrorUnknown;
  worker.Do([&] { ended = CALL(other, hipStreamEndCapture(stream, &graph)); });
  if (ended != hipSuccess) End(lane, stream, 0);
  Status(lane, stream);

  // A mode that was exchanged, as libraries do it to allocate during a capture.
  hipStreamCaptureMode exchanged = hipStreamCaptureModeRelaxed;
  void* pointer = nullptr;
  CALL(lane, hipThreadExchangeStreamCaptureMode(&exchanged));
  lane.Number("was", exchanged);
  CALL(lane, hipStreamBeginCapture(stream, mode));
  if (CALL(lane, hipMalloc(&pointer, 4096)) == hipSuccess) CALL(lane, hipFree(pointer));
  LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, 1, differential::kCount, 100));
  End(lane, stream, 1);
  CALL(lane, hipThreadExchangeStreamCaptureMode(&exchanged));
  lane.Number("was", exchanged);

  CALL(lane, hipStreamSynchronize(stream));
  CALL(lane, hipStreamSynchronize(side));
  for (const hipStream_t one : {stream, side})
    CALL(lane, hipStreamDestroy(one));
  CALL(lane, hipEventDestroy(event));
  values.Free(lane);
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  Lane other = run.MakeLane("other thread");
  differential::Worker worker;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      worker.Do([&] { CALL(other, hipSetDevice(device)); });
      for (const hipStreamCaptureMode mode : kModes) {
        lane.Number("mode", mode);
        Captured(lane, mode, worker, other);
        Forbidden(lane, mode, worker, other);
        Wrong(lane, mode, worker, other);
      }
    }
  }
  return run.End();
}
