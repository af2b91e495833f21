// Events: flags, states (never recorded, pending, done, recorded again), times, waits between streams and devices,
// events of a single launch, and wrong calls. Work is pending because a stream waits for a value that the host writes
// later, not because the program is fast.
#include <hip/hip_ext.h>

#include <thread>

#include "tests/e2e/programs/event_memory.h"
#include "values.h"

using differential::Lane;

namespace {

// A stream that is stuck until Free().
struct Stuck {
  hipStream_t stream = nullptr;
  std::uint64_t* value = nullptr;

  explicit Stuck(Lane& lane) {
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CALL(lane, hipExtMallocWithFlags(reinterpret_cast<void**>(&value), sizeof *value, hipMallocSignalMemory));
    *value = 0;
    CALL(lane, hipStreamWaitValue64(stream, value, 1, hipStreamWaitValueGte, ~std::uint64_t{0}));
  }
  void Free() { *value = 1; }
  void Destroy(Lane& lane) {
    CALL(lane, hipStreamSynchronize(stream));
    CALL(lane, hipStreamDestroy(stream));
    CALL(lane, hipFree(value));
  }
};

void Flags(Lane& lane) {
  for (const unsigned flags : {0x0u, 0x1u, 0x2u, 0x3u, 0x4u, 0x6u, 0x7u, 0x8u, 0x40000000u, 0x80000000u, 0xC0000000u}) {
    hipEvent_t event = nullptr;
    if (CALL(lane, hipEventCreateWithFlags(&event, flags)) != hipSuccess) continue;
    lane.Number("flags", flags);
    CALL(lane, hipEventQuery(event));
    CALL(lane, hipEventSynchronize(event));
    CALL(lane, hipEventRecord(event, nullptr));
    CALL(lane, hipEventSynchronize(event));
    CALL(lane, hipEventQuery(event));
    CALL(lane, hipEventRecord(event, nullptr));  // again
    CALL(lane, hipStreamSynchronize(nullptr));
    CALL(lane, hipEventQuery(event));
    hipIpcEventHandle_t handle{};
    if ((flags & hipEventInterprocess) != 0) CALL(lane, hipIpcGetEventHandle(&handle, event));
    CALL(lane, hipEventDestroy(event));
    e2e::UnlinkEventMemory(handle);
  }
}

void Wrong(Lane& lane) {
  hipEvent_t event, untimed;
  hipStream_t stream;
  float ms = -1;
  CALL(lane, hipEventCreate(&event));
  CALL(lane, hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
  CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipEventCreate(nullptr));
  CALL(lane, hipEventRecord(nullptr, stream));
  CALL(lane, hipEventQuery(nullptr));
  CALL(lane, hipEventSynchronize(nullptr));
  CALL(lane, hipEventDestroy(nullptr));
  CALL(lane, hipStreamWaitEvent(stream, nullptr, 0));
  CALL(lane, hipStreamWaitEvent(stream, event, 0));  // never recorded: nothing to wait for
  CALL(lane, hipStreamWaitEvent(stream, event, 7));
  CALL(lane, hipEventElapsedTime(&ms, event, event));  // never recorded
  CALL(lane, hipEventElapsedTime(nullptr, event, event));
  CALL(lane, hipEventElapsedTime(&ms, nullptr, event));
  CALL(lane, hipEventRecord(event, stream));
  CALL(lane, hipEventRecord(untimed, stream));
  CALL(lane, hipStreamSynchronize(stream));
  CALL(lane, hipEventElapsedTime(&ms, event, untimed));
  CALL(lane, hipEventElapsedTime(&ms, untimed, event));
  CALL(lane, hipStreamDestroy(stream));
  CALL(lane, hipEventDestroy(event));
  CALL(lane, hipEventDestroy(untimed));
}

void Times(Lane& lane, differential::Values& values) {
  hipEvent_t from, to, never;
  hipStream_t stream;
  float ms = -1;
  CALL(lane, hipEventCreate(&from));
  CALL(lane, hipEventCreateWithFlags(&to, hipEventBlockingSync));
  CALL(lane, hipEventCreate(&never));
  CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipEventRecord(from, stream));
  for (unsigned step = 0; step < 3; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 1000));
    values.Step(values, step);
  }
  CALL(lane, hipEventRecord(to, stream));
  CALL(lane, hipEventSynchronize(to));
  CALL(lane, hipEventQuery(from));
  CALL(lane, hipEventElapsedTime(&ms, from, to));
  lane.Sign("from, to", ms);
  CHECK(lane, ms >= 2.9f);  // three kernels of 1 ms, of the device's time
  CALL(lane, hipEventElapsedTime(&ms, to, from));
  lane.Sign("to, from", ms);
  CALL(lane, hipEventElapsedTime(&ms, from, from));
  lane.Sign("from, from", ms);
  CALL(lane, hipEventElapsedTime(&ms, from, never));
  CALL(lane, hipEventElapsedTime(&ms, never, to));

  // Around a single kernel: the program's own events, which the shim must leave alone.
  void* device = values.device;
  differential::Value step = 5;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros = 1000;
  void* arguments[] = {&device, &device, &step, &count, &micros};
  const auto kernel = reinterpret_cast<const void*>(scale_add);
  for (const auto& [start, stop] : {std::pair{from, to}, std::pair{from, hipEvent_t{}}, std::pair{hipEvent_t{}, to},
                                    std::pair{hipEvent_t{}, hipEvent_t{}}}) {
    CALL(lane, hipExtLaunchKernel(kernel, dim3(2), dim3(128), arguments, 0, stream, start, stop, 0));
    values.Step(values, step);
    CALL(lane, hipStreamSynchronize(stream));
    if (start != nullptr) CALL(lane, hipEventQuery(start));
    if (stop != nullptr) CALL(lane, hipEventQuery(stop));
    if (start != nullptr && stop != nullptr) {
      CALL(lane, hipEventElapsedTime(&ms, start, stop));
      CHECK(lane, ms >= 0.9f);
    }
  }
  values.Check(lane, "timed");
  CALL(lane, hipStreamDestroy(stream));
  for (const hipEvent_t event : {from, to, never})
    CALL(lane, hipEventDestroy(event));
}

// A pending event, and what happens to streams that wait for it when it is recorded again or destroyed meanwhile.
void Pending(Lane& lane, differential::Ordered& order) {
  Stuck stuck(lane);
  hipStream_t other;
  hipEvent_t first, pending, twice, gone;
  float ms = -1;
  CALL(lane, hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  CALL(lane, hipEventCreate(&first));
  CALL(lane, hipEventCreate(&pending));
  CALL(lane, hipEventCreateWithFlags(&twice, hipEventDisableTiming));
  CALL(lane, hipEventCreateWithFlags(&gone, hipEventDisableTiming));

  CALL(lane, hipEventRecord(first, other));
  CALL(lane, hipEventSynchronize(first));
  CALL(lane, hipEventRecord(pending, stuck.stream));
  CALL(lane, hipEventQuery(pending));
  CALL(lane, hipEventElapsedTime(&ms, first, pending));
  CALL(lane, hipEventElapsedTime(&ms, pending, first));

  // `twice` is done when `other` waits for it; that it is recorded again on the stuck stream does not matter any more.
  CALL(lane, hipEventRecord(twice, other));
  CALL(lane, hipStreamWaitEvent(other, twice, 0));
  CALL(lane, hipEventRecord(twice, stuck.stream));
  CALL(lane, hipEventQuery(twice));
  order.Append(lane, other, 300);
  CALL(lane, hipStreamSynchronize(other));
  CALL(lane, hipEventQuery(twice));

  // `other` waits for the stuck stream; the event it waits for is destroyed.
  order.Append(lane, stuck.stream, 300);
  CALL(lane, hipEventRecord(gone, stuck.stream));
  CALL(lane, hipStreamWaitEvent(other, gone, 0));
  CALL(lane, hipEventDestroy(gone));
  order.Append(lane, other, 100);
  CALL(lane, hipStreamQuery(other));

  // A third thread waits for what is pending, the main thread lets it come.
  Lane waiting("waits", lane.Random(1000));
  std::thread thread([&] {
    CALL(waiting, hipEventSynchronize(pending));
    CALL(waiting, hipEventQuery(pending));
  });
  stuck.Free();
  thread.join();
  CALL(lane, hipStreamSynchronize(other));
  order.Check(lane, "behind the stuck stream");
  CALL(lane, hipEventElapsedTime(&ms, first, pending));
  lane.Sign("first, pending", ms);
  CALL(lane, hipEventQuery(twice));
  for (const hipEvent_t event : {first, pending, twice})
    CALL(lane, hipEventDestroy(event));
  CALL(lane, hipStreamDestroy(other));
  stuck.Destroy(lane);
}

// One order for kernels on three streams, by events that are recorded again and again.
void Handed(Lane& lane, differential::Ordered& order) {
  hipStream_t streams[3];
  hipEvent_t events[2];
  for (hipStream_t& stream : streams)
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (hipEvent_t& event : events)
    CALL(lane, hipEventCreateWithFlags(&event, lane.Random(2) ? hipEventDisableTiming : hipEventDefault));
  unsigned last = 0;
  for (int step = 0; step < 25; ++step) {
    const unsigned next = lane.Random(3);
    if (next != last) {
      const hipEvent_t event = events[lane.Random(2)];
      CALL(lane, hipEventRecord(event, streams[last]));
      CALL(lane, hipStreamWaitEvent(streams[next], event, 0));
      if (lane.Random(4) == 0) CALL(lane, hipEventSynchronize(event));
    }
    order.Append(lane, streams[next], 100 + lane.Random(600));
    last = next;
    // Whether the last kernel has finished depends on the machine.
    if (lane.Random(4) == 0)
      EITHER(lane, "the kernel may be done", hipEventQuery(events[0]), hipSuccess, hipErrorNotReady);
    if (lane.Random(4) == 0)
      EITHER(lane, "the kernel may be done", hipStreamQuery(streams[next]), hipSuccess, hipErrorNotReady);
  }
  CALL(lane, hipStreamSynchronize(streams[last]));
  order.Check(lane, "handed on by events");
  for (const hipStream_t stream : streams)
    CALL(lane, hipStreamDestroy(stream));
  for (const hipEvent_t event : events)
    CALL(lane, hipEventDestroy(event));
}

// An event of one device: waited for on another, recorded there (which is wrong).
void BetweenDevices(Lane& lane, differential::Values& values) {
  hipStream_t streams[2];
  hipEvent_t event;
  differential::Ordered other;
  CALL(lane, hipSetDevice(0));
  CALL(lane, hipStreamCreate(&streams[0]));
  CALL(lane, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  CALL(lane, hipSetDevice(1));
  CALL(lane, hipStreamCreate(&streams[1]));
  other.Make(lane);
  for (int step = 0; step < 4; ++step) {
    CALL(lane, hipSetDevice(0));
    LAUNCH(lane, scale_add<<<2, 128, 0, streams[0]>>>(values.device, values.device, step, differential::kCount, 700));
    values.Step(values, step);
    CALL(lane, hipEventRecord(event, streams[0]));
    CALL(lane, hipSetDevice(1));
    CALL(lane, hipStreamWaitEvent(streams[1], event, 0));
    other.Append(lane, streams[1], 200);
    CALL(lane, hipStreamSynchronize(streams[1]));
    CALL(lane, hipEventQuery(event));  // its kernel is done: the other device waited for it
  }
  CALL(lane, hipEventRecord(event, streams[1]));
  CALL(lane, hipStreamSynchronize(streams[1]));
  other.Check(lane, "on the other device");
  CALL(lane, hipStreamDestroy(streams[1]));
  other.Free(lane);
  CALL(lane, hipSetDevice(0));
  CALL(lane, hipStreamSynchronize(streams[0]));
  CALL(lane, hipStreamDestroy(streams[0]));
  CALL(lane, hipEventDestroy(event));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      differential::Ordered order;
      differential::Values values;
      order.Make(lane);
      values.Make(lane);
      Flags(lane);
      Wrong(lane);
      Times(lane, values);
      Pending(lane, order);
      Handed(lane, order);
      if (run.devices > 1 && device == 0) {
        BetweenDevices(lane, values);
        values.Check(lane, "for the other device");
      }
      order.Free(lane);
      values.Free(lane);
    }
  }
  return run.End();
}
