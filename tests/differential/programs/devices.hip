// Two devices: a thread's current device, streams and events of one while the other is current, peer access and copies,
// launches on several devices in one call, and threads that each work on their own. With one device the same calls are
// made, and most of them fail.
//
// ROCm 5.2.3 does not define the order of a default stream's work with another device, so work on two devices is
// ordered by events, or is on created streams.
#include <hip/hip_ext.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Value;
using differential::Values;

namespace {

constexpr int kMaxDevices = 2;

struct Device {
  Values values, other;
  hipStream_t stream = nullptr;
  hipEvent_t event = nullptr;
};

struct World {
  Run* run;
  int count;  // of devices that are there
  Device devices[kMaxDevices];
};

std::uint64_t Micros(Lane& lane) {
  return 100 + 200 * lane.Random(8);
}

void Current(Lane& lane) {
  int device = -1;
  CALL(lane, hipGetDevice(&device));
  lane.Number("current device", device);
}

void Launch(Lane& lane, Device& device, hipStream_t stream) {
  const Value step = lane.Random(1000);
  LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(device.values.device, device.other.device, step, differential::kCount,
                                                Micros(lane)));
  device.values.Step(device.other, step);
}

void Make(World& w) {
  Lane& lane = w.run->main;
  for (int d = 0; d < w.count; ++d) {
    Device& device = w.devices[d];
    CALL(lane, hipSetDevice(d));
    device.values.Make(lane);
    device.other.Make(lane);
    CALL(lane, hipStreamCreate(&device.stream));
    CALL(lane, hipEventCreateWithFlags(&device.event, hipEventDisableTiming));
  }
  Current(lane);
}

// A stream's work goes to the stream's device, whichever device is current. The runtime's result for an event of the
// other device must not change.
void WrongDeviceCurrent(World& w) {
  Lane& lane = w.run->main;
  for (int current = 0; current < w.count; ++current) {
    CALL(lane, hipSetDevice(current));
    for (int d = 0; d < w.count; ++d) {
      Device& device = w.devices[d];
      Device& next = w.devices[(d + 1) % w.count];
      for (unsigned n = 1 + lane.Random(4); n > 0; --n)
        Launch(lane, device, device.stream);
      const auto byte = static_cast<unsigned char>(lane.Random(8));
      CALL(lane, hipMemsetAsync(device.other.device, byte, differential::kBytes, device.stream));
      device.other.Fill(byte);
      CALL(lane, hipEventRecord(device.event, device.stream));
      CALL(lane, hipStreamWaitEvent(next.stream, device.event, 0));
      // The default stream is the current device's; the kernel and its memory are another's.
      if (d != current) CALL(lane, hipEventRecord(device.event, nullptr));
      CALL(lane, hipEventRecord(device.event, device.stream));
      Current(lane);
    }
    for (int d = 0; d < w.count; ++d) {
      CALL(lane, hipStreamSynchronize(w.devices[d].stream));
      CALL(lane, hipEventSynchronize(w.devices[d].event));
      CALL(lane, hipEventQuery(w.devices[d].event));
      CALL(lane, hipStreamQuery(w.devices[d].stream));
    }
    Current(lane);
    // Made for the current device, destroyed while another is.
    hipStream_t stream = nullptr;
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    Launch(lane, w.devices[current], stream);
    CALL(lane, hipSetDevice((current + 1) % w.count));
    Launch(lane, w.devices[current], stream);
    CALL(lane, hipStreamSynchronize(stream));
    CALL(lane, hipStreamDestroy(stream));
    Current(lane);
  }
  for (int d = 0; d < w.count; ++d)
    w.devices[d].values.Check(lane, "values of a device");
}

// The default stream of each device, whichever was used before.
void DefaultStreams(World& w) {
  Lane& lane = w.run->main;
  for (int n = 0; n < 4; ++n) {
    const int d = static_cast<int>(lane.Random(static_cast<unsigned>(w.count)));
    CALL(lane, hipSetDevice(d));
    Launch(lane, w.devices[d], nullptr);
    CALL(lane, hipStreamSynchronize(nullptr));
    CALL(lane, hipDeviceSynchronize());
    w.devices[d].values.Check(lane, "values of a default stream");
  }
}

// From one device to the other and back, behind kernels and before them, with peer access and without. With one device
// the other one is not there.
void Peers(World& w) {
  Lane& lane = w.run->main;
  constexpr int kPeer = 1;
  CALL(lane, hipSetDevice(0));
  int can_access = -1;
  CALL(lane, hipDeviceCanAccessPeer(&can_access, 0, kPeer));
  lane.Number("can access its peer", can_access);
  CALL(lane, hipDeviceDisablePeerAccess(kPeer));
  CALL(lane, hipDeviceEnablePeerAccess(kPeer, 0));
  CALL(lane, hipDeviceEnablePeerAccess(kPeer, 0));
  CALL(lane, hipDeviceEnablePeerAccess(kPeer, 1));
  CALL(lane, hipDeviceEnablePeerAccess(0, 0));
  Device& first = w.devices[0];
  Device& second = w.devices[w.count - 1];
  Launch(lane, first, first.stream);
  CALL(lane, hipMemcpyPeerAsync(second.values.device, w.count - 1, first.values.device, 0, differential::kBytes,
                                first.stream));
  second.values.model = first.values.model;
  CALL(lane, hipEventRecord(first.event, first.stream));
  CALL(lane, hipStreamWaitEvent(second.stream, first.event, 0));
  Launch(lane, second, second.stream);
  CALL(lane, hipStreamSynchronize(second.stream));
  CALL(lane, hipMemcpyPeer(first.values.device, 0, second.values.device, w.count - 1, differential::kBytes));
  first.values.model = second.values.model;
  CALL(lane, hipDeviceSynchronize());
  first.values.Check(lane, "values that were there and are back");
  CALL(lane, hipMemcpyPeer(first.values.device, 0, second.values.device, kPeer + 1, differential::kBytes));
  CALL(lane, hipMemcpy(second.values.device, first.values.device, differential::kBytes, hipMemcpyDeviceToDevice));
  CALL(lane, hipDeviceSynchronize());
  second.values.model = first.values.model;
  second.values.Check(lane, "values by hipMemcpy");
  CALL(lane, hipDeviceDisablePeerAccess(kPeer));
  CALL(lane, hipDeviceDisablePeerAccess(kPeer));
}

// One call, a launch on each device. `kind`: cooperative, or hipExtLaunchMultiKernelMultiDevice.
void OneCall(World& w, bool is_cooperative) {
  Lane& lane = w.run->main;
  hipLaunchParams list[kMaxDevices] = {};
  struct {
    Value* y;
    const Value* x;
    Value step;
    std::uint32_t count;
    std::uint64_t micros;
  } arguments[kMaxDevices];
  void* pointers[kMaxDevices][5];
  for (int d = 0; d < w.count; ++d) {
    Device& device = w.devices[d];
    arguments[d] = {device.values.device, device.other.device, lane.Random(1000), differential::kCount, Micros(lane)};
    device.values.Step(device.other, arguments[d].step);
    void* all[5] = {&arguments[d].y, &arguments[d].x, &arguments[d].step, &arguments[d].count, &arguments[d].micros};
    std::copy(std::begin(all), std::end(all), pointers[d]);
    list[d].func = reinterpret_cast<void*>(&scale_add);
    list[d].gridDim = dim3(2);
    list[d].blockDim = dim3(128);
    list[d].args = pointers[d];
    list[d].stream = device.stream;
  }
  const auto launch = [&](int count) {
    if (is_cooperative) {
      CALL(lane, hipLaunchCooperativeKernelMultiDevice(list, count, 0));
    } else {
      CALL(lane, hipExtLaunchMultiKernelMultiDevice(list, count, 0));
    }
  };
  launch(w.count);
  for (int d = 0; d < w.count; ++d) {
    CALL(lane, hipStreamSynchronize(w.devices[d].stream));
    w.devices[d].values.Check(lane, "values of one call");
  }
  // Two entries on one device, one without a stream: errors.
  list[w.count - 1].stream = nullptr;
  launch(w.count);
  list[w.count - 1].stream = list[0].stream;
  launch(w.count);
  launch(0);
  Current(lane);
}

// Each thread sets its device and works there, with the other's stream now and then.
void Threads(World& w) {
  constexpr int kThreads = 4;
  std::vector<Lane> lanes;
  for (int t = 0; t < kThreads; ++t)
    lanes.push_back(w.run->MakeLane("thread " + std::to_string(t)));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&w, t, &lane = lanes[static_cast<std::size_t>(t)]] {
      Current(lane);  // a new thread's is device 0
      const int d = t % w.count;
      CALL(lane, hipSetDevice(d));
      Device own;
      own.values.Make(lane);
      own.other.Make(lane);
      CALL(lane, hipStreamCreateWithFlags(&own.stream, hipStreamNonBlocking));
      for (int n = 0; n < 6; ++n) {
        CALL(lane, hipSetDevice(static_cast<int>(lane.Random(static_cast<unsigned>(w.count)))));
        Launch(lane, own, own.stream);
        CALL(lane, hipSetDevice(w.count));
        Current(lane);
      }
      CALL(lane, hipStreamSynchronize(own.stream));
      own.values.Check(lane, "values of a thread");
      CALL(lane, hipStreamDestroy(own.stream));
      own.values.Free(lane);
      own.other.Free(lane);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

// The same devices under other numbers, or fewer of them: HIP_VISIBLE_DEVICES, in a process of its own.
void Reordered(Run& run) {
  for (const char* visible : {"1,0", "1", "0", "5", "0,0"}) {
    setenv("HIP_VISIBLE_DEVICES", visible, 1);
    const std::string ended = differential::WaitForChild(differential::StartChild(run, visible));
    run.main.Note((std::string("visible ") + visible + ": " + ended).c_str());
  }
  unsetenv("HIP_VISIBLE_DEVICES");
}

int ReorderedChild(Run& run, const char* visible) {
  run.main = run.MakeLane(std::string("visible ") + visible);
  World w{&run, 0, {}};
  CALL(run.main, hipGetDeviceCount(&w.count));
  run.main.Number("devices", w.count);
  for (int d = 0; d <= w.count; ++d) {
    char address[32] = "";
    CALL(run.main, hipDeviceGetPCIBusId(address, sizeof address, d));
    run.main.Note(address);
  }
  if (w.count < 1 || w.count > kMaxDevices) return 1;
  Make(w);
  WrongDeviceCurrent(w);
  Peers(w);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  if (argc > 4) return ReorderedChild(run, argv[4]);
  Reordered(run);
  World w{&run, 0, {}};
  CALL(run.main, hipGetDeviceCount(&w.count));
  run.main.Number("devices", w.count);
  if (w.count < 1 || w.count > kMaxDevices) return 1;
  Make(w);
  for (unsigned round = 0; round < run.rounds; ++round) {
    WrongDeviceCurrent(w);
    DefaultStreams(w);
    Peers(w);
    OneCall(w, true);
    OneCall(w, false);
    Threads(w);
    CALL(run.main, hipSetDevice(0));
  }
  return run.End();
}
