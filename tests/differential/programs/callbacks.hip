// Host functions in stream order: their order with kernels and with each other, their arguments, and threads that wait
// for one while another thread's launch is held.
//
// A callback runs on a thread of the runtime. One that waits for a lock which a launching thread holds over its launch
// hangs without xschedd, too, as soon as the launch waits for the callback; so no program here does that. But a
// callback that the main thread waits for while another thread is held must come, whatever is held.
#include <atomic>
#include <memory>
#include <thread>

#include "values.h"

using differential::Lane;

namespace {

// A callback's work and its lane. Each stream has a lane, because the order between streams is random.
struct Note {
  Lane* lane;
  unsigned number;
  std::atomic<unsigned>* count;
};

void Called(hipStream_t, hipError_t status, void* data) {
  const std::unique_ptr<Note> note(static_cast<Note*>(data));
  note->lane->Error("status", status);
  note->lane->Number("callback", note->number);
  ++*note->count;
}

// Kernels, callbacks and copies in turns on several streams.
void InOrder(const differential::Run& run, Lane& lane, unsigned round, int device) {
  constexpr unsigned kStreams = 3;
  hipStream_t streams[kStreams] = {};  // the first: the default stream
  std::vector<std::unique_ptr<Lane>> lanes;
  differential::Ordered order[kStreams];
  std::atomic<unsigned> count = 0;
  CALL(lane, hipStreamCreate(&streams[1]));
  CALL(lane, hipStreamCreateWithFlags(&streams[2], hipStreamNonBlocking));
  for (unsigned s = 0; s < kStreams; ++s) {
    lanes.push_back(
        std::make_unique<Lane>(run.MakeLane("callbacks of stream " + std::to_string(s) + " of device " +
                                            std::to_string(device) + " in round " + std::to_string(round))));
    order[s].Make(lane);
  }
  unsigned wanted = 0;
  for (unsigned step = 0; step < 40; ++step) {
    const unsigned s = lane.Random(kStreams);
    if (lane.Random(3) == 0) {
      CALL(lane, hipStreamAddCallback(streams[s], Called, new Note{lanes[s].get(), step, &count}, 0));
      ++wanted;
    } else {
      order[s].Append(lane, streams[s], 100 + lane.Random(600));
    }
    if (lane.Random(12) == 0) {
      CALL(lane, hipStreamSynchronize(streams[s]));
    }
  }
  for (const hipStream_t stream : streams)
    CALL(lane, hipStreamSynchronize(stream));
  CHECK(lane, count == wanted);  // a stream has finished only when its callbacks have returned
  for (unsigned s = 0; s < kStreams; ++s)
    order[s].Check(lane, "kernels beside callbacks");
  for (differential::Ordered& one : order)
    one.Free(lane);
  CALL(lane, hipStreamDestroy(streams[1]));
  CALL(lane, hipStreamDestroy(streams[2]));
}

// The callback reads what the kernel before it wrote, into memory of the host, and the kernel behind it reads what the
// callback wrote there.
struct Exchange {
  differential::Value* host;  // pinned
  Lane* lane;
};

void Change(hipStream_t, hipError_t status, void* data) {
  auto* exchange = static_cast<Exchange*>(data);
  exchange->lane->Error("status", status);
  exchange->lane->Data("the callback sees", exchange->host, differential::kBytes);
  for (std::uint32_t i = 0; i < differential::kCount; ++i)
    exchange->host[i] ^= 0x5555u;
}

void Exchanged(Lane& lane) {
  hipStream_t stream;
  differential::Value* host;
  differential::Values values;
  Lane called("exchange", lane.Random(1000));
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipHostMalloc(&host, differential::kBytes, 0));
  values.Make(lane);
  Exchange exchange{host, &called};
  for (unsigned step = 0; step < 6; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 500));
    values.Step(values, step);
    CALL(lane, hipMemcpyAsync(host, values.device, differential::kBytes, hipMemcpyDeviceToHost, stream));
    CALL(lane, hipStreamAddCallback(stream, Change, &exchange, 0));
    CALL(lane, hipMemcpyAsync(values.device, host, differential::kBytes, hipMemcpyHostToDevice, stream));
    for (differential::Value& value : values.model)
      value ^= 0x5555u;
  }
  CALL(lane, hipStreamSynchronize(stream));
  values.Check(lane, "exchanged");
  values.Free(lane);
  CALL(lane, hipHostFree(host));
  CALL(lane, hipStreamDestroy(stream));
}

// Another thread launches until it is told to stop, and is held meanwhile, under a scheduler. The callback's work was
// submitted before, so it comes.
void Set(hipStream_t, hipError_t, void* data) {
  static_cast<std::atomic<bool>*>(data)->store(true);
}

void WaitedForWhileHeld(differential::Run& run) {
  Lane& lane = run.main;
  hipStream_t stream, other;
  differential::Values values, others;
  std::atomic<bool> called = false, stop = false;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CALL(lane, hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  values.Make(lane);
  others.Make(lane);
  for (unsigned step = 0; step < 4; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 2000));
    values.Step(values, step);
  }
  CALL(lane, hipStreamAddCallback(stream, Set, &called, 0));
  int device = 0;
  CALL(lane, hipGetDevice(&device));
  std::thread thread([&, device] {
    // How often it launches depends on the machine, so it is not written.
    bool failed = hipSetDevice(device) != hipSuccess;
    for (unsigned step = 0; !stop; ++step) {
      scale_add<<<2, 128, 0, other>>>(others.device, others.device, step, differential::kCount, 100);
      failed = failed || hipGetLastError() != hipSuccess || hipStreamSynchronize(other) != hipSuccess;
    }
    Lane launches("launches beside", 0);
    CHECK(launches, !failed);
  });
  run.Ask("hold");
  run.Ask("held");
  while (!called)
    std::this_thread::yield();
  run.Ask("release");
  stop = true;
  thread.join();
  CALL(lane, hipStreamSynchronize(stream));
  values.Check(lane, "while another is held");
  CALL(lane, hipStreamDestroy(stream));
  CALL(lane, hipStreamDestroy(other));
  values.Free(lane);
  others.Free(lane);
}

void Wrong(Lane& lane) {
  std::atomic<bool> called = false;
  CALL(lane, hipStreamAddCallback(nullptr, nullptr, nullptr, 0));
  CALL(lane, hipStreamAddCallback(nullptr, Set, &called, 1));
  CALL(lane, hipStreamAddCallback(nullptr, Set, &called, 0));
  CALL(lane, hipStreamSynchronize(nullptr));
  CHECK(lane, called);
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      CALL(lane, hipSetDevice(device));
      InOrder(run, lane, round, device);
      Exchanged(lane);
      WaitedForWhileHeld(run);
      Wrong(lane);
    }
  }
  return run.End();
}
