// Graphs: built from nodes of every kind, instantiated, updated (nodes' parameters, the whole executable), cloned, with
// children, launched from several streams, and destroyed while a launch is under way.
//
// Left out: host nodes that run. 5.2.3 uses the command of one after it has been freed (valgrind shows it in the
// runtime's own completion handler, without the shim), and crashes in most runs of this program.

#include "values.h"

using differential::Lane;
using differential::Value;

namespace {

// Arguments of scale_add that outlive the call that copies them.
struct Arguments {
  Value* y;
  const Value* x;
  Value step;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros;
  void* list[5];

  Arguments(Value* y_, const Value* x_, Value step_, std::uint64_t micros_)
      : y(y_), x(x_), step(step_), micros(micros_), list{&y, &x, &step, &count, &micros} {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  hipKernelNodeParams Node() {
    hipKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(scale_add);
    params.gridDim = dim3(2);
    params.blockDim = dim3(128);
    params.kernelParams = list;
    return params;
  }
};

void Nothing(void*) {}

// All kinds of nodes in one chain, and updates of their parameters.
void Built(Lane& lane, differential::Values* values, differential::Ordered& order) {
  hipStream_t stream;
  hipEvent_t event;
  hipGraph_t graph, child;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  CALL(lane, hipGraphCreate(&graph, 0));
  CALL(lane, hipGraphCreate(&child, 0));

  Arguments first(values[0].device, values[1].device, 3, 300), in_child(values[0].device, values[1].device, 5, 300);
  hipKernelNodeParams params = first.Node();
  hipGraphNode_t kernel, fill, copy, recorded, waited, child_node, child_kernel, empty;
  CALL(lane, hipGraphAddKernelNode(&kernel, graph, nullptr, 0, &params));
  hipMemsetParams fill_params{};
  fill_params.dst = values[1].device;
  fill_params.value = 0x21;
  fill_params.elementSize = 1;
  fill_params.width = differential::kBytes;
  fill_params.height = 1;
  CALL(lane, hipGraphAddMemsetNode(&fill, graph, &kernel, 1, &fill_params));
  CALL(lane, hipGraphAddEventRecordNode(&recorded, graph, &fill, 1, event));
  CALL(lane, hipGraphAddEventWaitNode(&waited, graph, &recorded, 1, event));
  params = in_child.Node();
  CALL(lane, hipGraphAddKernelNode(&child_kernel, child, nullptr, 0, &params));
  CALL(lane, hipGraphAddChildGraphNode(&child_node, graph, &waited, 1, child));
  CALL(lane, hipGraphAddMemcpyNode1D(&copy, graph, &child_node, 1, values[2].device, values[0].device,
                                     differential::kBytes, hipMemcpyDeviceToDevice));
  CALL(lane, hipGraphAddEmptyNode(&empty, graph, &copy, 1));

  const auto model = [&](Value kernel_step, unsigned char byte, Value child_step) {
    values[0].Step(values[1], kernel_step);
    values[1].Fill(byte);
    values[0].Step(values[1], child_step);
    values[2].model = values[0].model;
  };
  hipGraphExec_t exec = nullptr;
  if (CALL(lane, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0)) != hipSuccess) return;
  for (int launch = 0; launch < 2; ++launch) {
    CALL(lane, hipGraphLaunch(exec, stream));
    model(3, 0x21, 5);
  }
  CALL(lane, hipStreamSynchronize(stream));
  for (int i = 0; i < 3; ++i)
    values[i].Check(lane, "built");

  // Other parameters for the executable only.
  Arguments second(values[0].device, values[1].device, 7, 400);
  params = second.Node();
  CALL(lane, hipGraphExecKernelNodeSetParams(exec, kernel, &params));
  fill_params.value = 0x35;
  CALL(lane, hipGraphExecMemsetNodeSetParams(exec, fill, &fill_params));
  CALL(lane, hipGraphLaunch(exec, stream));
  CALL(lane, hipStreamSynchronize(stream));
  model(7, 0x35, 5);
  for (int i = 0; i < 3; ++i)
    values[i].Check(lane, "its parameters set");

  // Restored by an update of the whole from the unchanged graph; and an update from a graph that does not match.
  hipGraphNode_t error_node = nullptr;
  hipGraphExecUpdateResult result{};
  CALL(lane, hipGraphExecUpdate(exec, graph, &error_node, &result));
  lane.Number("result", result);
  CALL(lane, hipGraphLaunch(exec, stream));
  CALL(lane, hipStreamSynchronize(stream));
  model(3, 0x21, 5);
  for (int i = 0; i < 3; ++i)
    values[i].Check(lane, "updated");
  CALL(lane, hipGraphExecUpdate(exec, child, &error_node, &result));
  lane.Number("result", result);

  // Wrong calls.
  CALL(lane, hipGraphLaunch(nullptr, stream));
  CALL(lane, hipGraphExecKernelNodeSetParams(exec, kernel, nullptr));
  CALL(lane, hipGraphInstantiate(nullptr, graph, nullptr, nullptr, 0));
  CALL(lane, hipGraphExecDestroy(nullptr));

  // A host node that never runs.
  hipGraph_t unused;
  hipGraphNode_t host;
  hipHostNodeParams host_params{Nothing, nullptr};
  CALL(lane, hipGraphCreate(&unused, 0));
  CALL(lane, hipGraphAddHostNode(&host, unused, nullptr, 0, &host_params));
  CALL(lane, hipGraphHostNodeGetParams(host, &host_params));
  CHECK(lane, host_params.fn == Nothing);
  CALL(lane, hipGraphAddHostNode(&host, unused, nullptr, 0, nullptr));
  CALL(lane, hipGraphDestroy(unused));

  // A clone launches as the original does, after the original is gone.
  hipGraph_t clone = nullptr;
  CALL(lane, hipGraphExecDestroy(exec));
  if (CALL(lane, hipGraphClone(&clone, graph)) == hipSuccess) {
    hipGraphNode_t in_clone = nullptr;
    CALL(lane, hipGraphNodeFindInClone(&in_clone, kernel, clone));
    CALL(lane, hipGraphDestroy(graph));
    if (CALL(lane, hipGraphInstantiate(&exec, clone, nullptr, nullptr, 0)) == hipSuccess) {
      CALL(lane, hipGraphLaunch(exec, stream));
      CALL(lane, hipStreamSynchronize(stream));
      model(3, 0x21, 5);
      for (int i = 0; i < 3; ++i)
        values[i].Check(lane, "cloned");
      CALL(lane, hipGraphExecDestroy(exec));
    }
    CALL(lane, hipGraphDestroy(clone));
  }
  CALL(lane, hipGraphDestroy(child));
  order.Append(lane, stream, 100);
  CALL(lane, hipStreamSynchronize(stream));
  order.Check(lane, "behind graphs");
  CALL(lane, hipEventDestroy(event));
  CALL(lane, hipStreamDestroy(stream));
}

hipGraphExec_t Captured(Lane& lane, hipStream_t stream, const differential::Values& values, unsigned kernels,
                        Value from, std::uint64_t micros, hipGraph_t* graph) {
  hipGraphExec_t exec = nullptr;
  CALL(lane, hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  for (unsigned k = 0; k < kernels; ++k)
    LAUNCH(lane,
           scale_add<<<2, 128, 0, stream>>>(values.device, values.device, from + k, differential::kCount, micros));
  CALL(lane, hipStreamEndCapture(stream, graph));
  CALL(lane, hipGraphInstantiate(&exec, *graph, nullptr, nullptr, 0));
  return exec;
}

// Two executables and plain kernels in random order on three streams, one order for all by events: also one executable
// on several streams, one behind the other.
void Launched(Lane& lane, differential::Values& values) {
  hipStream_t streams[3] = {};  // the first: the default stream
  hipEvent_t event;
  hipGraph_t graphs[2];
  hipGraphExec_t execs[2];
  CALL(lane, hipStreamCreateWithFlags(&streams[1], hipStreamNonBlocking));
  CALL(lane, hipStreamCreate(&streams[2]));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  const unsigned kernels[] = {1 + lane.Random(3), 4};
  for (unsigned g = 0; g < 2; ++g)
    execs[g] = Captured(lane, streams[1], values, kernels[g], 10 * g, 200 + 100 * g, &graphs[g]);
  unsigned last = 0;
  for (unsigned step = 0; step < 20; ++step) {
    const unsigned next = lane.Random(3), what = lane.Random(4);
    if (next != last) {
      CALL(lane, hipEventRecord(event, streams[last]));
      CALL(lane, hipStreamWaitEvent(streams[next], event, 0));
    }
    if (what < 2) {
      CALL(lane, hipGraphLaunch(execs[what], streams[next]));
      for (unsigned k = 0; k < kernels[what]; ++k)
        values.Step(values, 10 * what + k);
    } else {
      LAUNCH(lane,
             scale_add<<<2, 128, 0, streams[next]>>>(values.device, values.device, step, differential::kCount, 300));
      values.Step(values, step);
    }
    if (lane.Random(6) == 0) CALL(lane, hipStreamSynchronize(streams[next]));
    last = next;
  }
  CALL(lane, hipStreamSynchronize(streams[last]));
  values.Check(lane, "graphs on streams");

  // Destroyed with a launch under way.
  CALL(lane, hipGraphLaunch(execs[1], streams[1]));
  for (unsigned k = 0; k < kernels[1]; ++k)
    values.Step(values, 10 + k);
  for (unsigned g = 0; g < 2; ++g) {
    CALL(lane, hipGraphExecDestroy(execs[g]));
    CALL(lane, hipGraphDestroy(graphs[g]));
  }
  CALL(lane, hipStreamSynchronize(streams[1]));
  values.Check(lane, "destroyed under way");
  CALL(lane, hipStreamDestroy(streams[1]));
  CALL(lane, hipStreamDestroy(streams[2]));
  CALL(lane, hipEventDestroy(event));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      differential::Values values[3];
      differential::Ordered order;
      order.Make(lane);
      for (differential::Values& one : values)
        one.Make(lane);
      Built(lane, values, order);
      Launched(lane, values[0]);
      for (differential::Values& one : values)
        one.Free(lane);
      order.Free(lane);
    }
  }
  return run.End();
}
