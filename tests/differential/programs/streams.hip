// Streams of every kind and the order between them: the legacy default stream is a barrier for blocking streams and
// none for non-blocking ones; priorities, flags, and calls that are wrong.
//
// No more than four streams at a time: each has a hardware queue of its own then, so that one that waits for a value
// does not keep another from running.
#include "values.h"

using differential::Lane;

namespace {

// Any blocking stream behind the default stream, the default stream behind any: one order for all. Blocking copies,
// fills and synchronisation of the default stream stand for kernels there.
void LegacyOrder(differential::Run& run, differential::Ordered& order, differential::Values* values) {
  Lane& lane = run.main;
  hipStream_t streams[2];
  CALL(lane, hipStreamCreate(&streams[0]));
  CALL(lane, hipStreamCreateWithFlags(&streams[1], hipStreamDefault));
  unsigned last = 2;  // an index of streams, or 2: the default stream
  for (int step = 0; step < 30; ++step) {
    const unsigned next = last == 2 ? lane.Random(3) : lane.Random(2) ? last : 2;
    const hipStream_t stream = next == 2 ? nullptr : streams[next];
    const std::uint64_t micros = 100 + lane.Random(1000);
    switch (lane.Random(8)) {
      case 0:
        CALL(lane,
             hipMemcpyAsync(values[0].device, values[1].device, differential::kBytes, hipMemcpyDeviceToDevice, stream));
        values[0].model = values[1].model;
        break;
      case 1:
        CALL(lane, hipMemsetAsync(values[1].device, step, differential::kBytes, stream));
        values[1].Fill(static_cast<unsigned char>(step));
        break;
      case 2:
      case 3:
        LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values[0].device, values[1].device, step, differential::kCount,
                                                      micros));
        values[0].Step(values[1], step);
        break;
      default:
        order.Append(lane, stream, micros);
        break;
    }
    last = next;
    if (lane.Random(10) == 0) {
      // Waits for the blocking streams, too: all is done after it.
      CALL(lane, hipStreamSynchronize(nullptr));
      CALL(lane, hipStreamQuery(nullptr));
      for (const hipStream_t one : streams)
        CALL(lane, hipStreamQuery(one));
    }
    if (lane.Random(10) == 0) values[0].Check(lane, "in between");  // a blocking copy: behind everything before it
  }
  CALL(lane, hipDeviceSynchronize());
  order.Check(lane, "legacy order");
  values[0].Check(lane, "legacy values");
  for (const hipStream_t one : streams)
    CALL(lane, hipStreamDestroy(one));
}

// A non-blocking stream waits for a value that the host writes at the end. The default stream, the blocking one and
// blocking calls do not wait for it.
void NonBlocking(differential::Run& run, differential::Ordered& order, differential::Values* values) {
  Lane& lane = run.main;
  hipStream_t waits, blocking;
  hipEvent_t behind;
  std::uint64_t* value;
  CALL(lane, hipStreamCreateWithFlags(&waits, hipStreamNonBlocking));
  CALL(lane, hipStreamCreate(&blocking));
  CALL(lane, hipEventCreateWithFlags(&behind, hipEventDisableTiming));
  CALL(lane, hipExtMallocWithFlags(reinterpret_cast<void**>(&value), sizeof *value, hipMallocSignalMemory));
  *value = 0;
  CALL(lane, hipStreamWaitValue64(waits, value, 1, hipStreamWaitValueGte, ~std::uint64_t{0}));
  LAUNCH(lane, scale_add<<<2, 128, 0, waits>>>(values[1].device, values[0].device, 77, differential::kCount, 300));
  CALL(lane, hipEventRecord(behind, waits));
  for (int step = 0; step < 6; ++step) {
    order.Append(lane, step % 2 ? blocking : nullptr, 200 + lane.Random(500));
    CALL(lane, hipStreamQuery(waits));
    CALL(lane, hipEventQuery(behind));
  }
  CALL(lane, hipStreamSynchronize(nullptr));
  CALL(lane, hipStreamSynchronize(blocking));
  CALL(lane, hipStreamQuery(waits));
  CALL(lane, hipEventQuery(behind));
  order.Check(lane, "beside one that waits");  // a blocking copy
  *value = 1;
  CALL(lane, hipStreamSynchronize(waits));
  CALL(lane, hipStreamQuery(waits));
  CALL(lane, hipEventQuery(behind));
  values[1].Step(values[0], 77);
  values[1].Check(lane, "of the one that waited");
  CALL(lane, hipEventDestroy(behind));
  CALL(lane, hipStreamDestroy(waits));
  CALL(lane, hipStreamDestroy(blocking));
  CALL(lane, hipFree(value));
}

void PrioritiesAndFlags(differential::Run& run, differential::Ordered& order) {
  Lane& lane = run.main;
  int least = 0, greatest = 0;
  CALL(lane, hipDeviceGetStreamPriorityRange(&least, &greatest));
  lane.Number("least", least);
  lane.Number("greatest", greatest);
  hipEvent_t done;
  CALL(lane, hipEventCreateWithFlags(&done, hipEventDisableTiming));
  for (int priority = greatest - 1; priority <= least + 1; ++priority) {
    for (const unsigned flags : {0u, 1u, 7u}) {
      hipStream_t stream = nullptr;
      if (CALL(lane, hipStreamCreateWithPriority(&stream, flags, priority)) != hipSuccess) continue;
      int got_priority = -77;
      unsigned got_flags = 77;
      CALL(lane, hipStreamGetPriority(stream, &got_priority));
      CALL(lane, hipStreamGetFlags(stream, &got_flags));
      lane.Number("priority", got_priority);
      lane.Number("flags", got_flags);
      CALL(lane, hipEventRecord(done, nullptr));
      CALL(lane, hipStreamWaitEvent(stream, done, 0));
      order.Append(lane, stream, 100);
      CALL(lane, hipStreamSynchronize(stream));
      CALL(lane, hipStreamDestroy(stream));
    }
  }
  order.Check(lane, "priorities");
  hipStream_t stream = nullptr;
  CALL(lane, hipStreamCreateWithFlags(&stream, 0x40));
  CALL(lane, hipStreamCreate(nullptr));
  CALL(lane, hipStreamGetPriority(nullptr, &least));
  CALL(lane, hipStreamDestroy(nullptr));
  const std::uint32_t mask[] = {0xFFu, 0u, 0u};
  if (CALL(lane, hipExtStreamCreateWithCUMask(&stream, 3, mask)) == hipSuccess) {
    std::uint32_t got[3] = {};
    CALL(lane, hipExtStreamGetCUMask(stream, 3, got));
    lane.Data("mask", got, sizeof got);
    order.Append(lane, stream, 100);
    CALL(lane, hipStreamSynchronize(stream));
    order.Check(lane, "with a mask");
    CALL(lane, hipStreamDestroy(stream));
  }
  CALL(lane, hipEventDestroy(done));
}

// Work behind which the stream is destroyed at once: it is done all the same, before the default stream goes on.
void DestroyedBusy(differential::Run& run, differential::Ordered& order) {
  Lane& lane = run.main;
  for (int i = 0; i < 4; ++i) {
    hipStream_t stream;
    CALL(lane, hipStreamCreate(&stream));
    order.Append(lane, stream, 500 + lane.Random(1000));
    order.Append(lane, stream, 100);
    CALL(lane, hipStreamDestroy(stream));
    order.Append(lane, nullptr, 100);
  }
  CALL(lane, hipStreamSynchronize(nullptr));
  order.Check(lane, "streams destroyed with work on them");
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      Lane& lane = run.main;
      CALL(lane, hipSetDevice(device));
      differential::Ordered order;
      differential::Values values[2];
      order.Make(lane);
      for (differential::Values& one : values)
        one.Make(lane);
      LegacyOrder(run, order, values);
      NonBlocking(run, order, values);
      PrioritiesAndFlags(run, order);
      DestroyedBusy(run, order);
      order.Free(lane);
      for (differential::Values& one : values)
        one.Free(lane);
    }
  }
  return run.End();
}
