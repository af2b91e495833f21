// Handles of destroyed events that are used again: destroyed, and passed to a launch. Since ROCm 6 the runtime looks up
// both in a list of its events and returns an error. A handle is an address, so an event that other code creates in
// between may get it: between an event's destruction and the wrong calls this program creates no event, and has
// launches in flight on more streams than before, which makes the shim create events.
//
// Even without the shim, 5.2.3 dereferences such a handle and crashes, so the wrong calls are left out there. 6.4.3 and
// 7.2.4 still crash if it is queried, synchronised, recorded or used for an elapsed time, so this program does not.
#include <hip/hip_ext.h>

#include "values.h"

using differential::Lane;

namespace {

constexpr unsigned kEvents = 8;
constexpr unsigned kStreamsMore = 4;  // in each step than in the step before

struct Part {
  hipStream_t stream = nullptr;
  differential::Values values;

  void Make(Lane& lane) {
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    values.Make(lane);
  }
  void Launch(Lane& lane, differential::Value step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 300));
    values.Step(values, step);
  }
  void Free(Lane& lane) {
    CALL(lane, hipStreamSynchronize(stream));
    values.Check(lane, "behind the wrong calls");
    values.Free(lane);
    CALL(lane, hipStreamDestroy(stream));
  }
};

bool RuntimeKnowsItsEvents() {
  int version = 0;
  return hipRuntimeGetVersion(&version) == hipSuccess && version >= 60'000'000;
}

void Use(Lane& lane, hipEvent_t gone, Part& part) {
  CALL(lane, hipEventDestroy(gone));
  void* device = part.values.device;
  differential::Value step = 5;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros = 300;
  void* arguments[] = {&device, &device, &step, &count, &micros};
  for (const auto& [start, stop] : {std::pair{gone, hipEvent_t{}}, std::pair{hipEvent_t{}, gone}}) {
    if (CALL(lane, hipExtLaunchKernel(reinterpret_cast<const void*>(scale_add), dim3(2), dim3(128), arguments, 0,
                                      part.stream, start, stop, 0)) == hipSuccess)
      part.values.Step(part.values, step);
  }
  CALL(lane, hipEventDestroy(gone));
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  const bool is_checked = RuntimeKnowsItsEvents();
  for (int device = 0; device < run.devices; ++device) {
    CALL(lane, hipSetDevice(device));
    for (unsigned step = 0; step < run.rounds; ++step) {
      std::vector<Part> parts(kStreamsMore * (step + 1));
      hipEvent_t events[kEvents];
      for (Part& part : parts)
        part.Make(lane);
      for (hipEvent_t& one : events) {
        CALL(lane, hipEventCreateWithFlags(&one, lane.Random(2) ? hipEventDisableTiming : hipEventDefault));
        CALL(lane, hipEventRecord(one, parts[0].stream));
      }
      CALL(lane, hipStreamSynchronize(parts[0].stream));
      for (const hipEvent_t one : events)
        CALL(lane, hipEventDestroy(one));
      for (unsigned launch = 0; launch < 2; ++launch) {
        for (Part& part : parts)
          part.Launch(lane, launch);
      }
      if (is_checked) {
        for (const hipEvent_t one : events)
          Use(lane, one, parts[lane.Random(static_cast<unsigned>(parts.size()))]);
      }
      for (Part& part : parts)
        part.Launch(lane, 7);
      for (Part& part : parts)
        part.Free(lane);
    }
  }
  return run.End();
}
