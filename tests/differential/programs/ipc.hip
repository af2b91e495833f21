// Memory and events of one process that another uses; both are clients, and one is held while the other waits for it.
//
// The parent makes memory and an event and gives their handles to a child through a pipe. They take turns: one works on
// the values, the other waits on its stream for the event. The pipes order which process records, as IPC events demand.
//
// Not with HIP 5.7, 6.4: an event of another process orders nothing, because hipEventRecord does not write to shared memory
//
// ROCm 5.2.3 leaves the event's shared memory behind; its name is the handle, and the program removes it.
#include <fcntl.h>

#include "child.h"
#include "tests/differential/transcript.h"
#include "tests/e2e/programs/event_memory.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Value;
using differential::Values;

namespace {

constexpr int kFromChild = 500, kToChild = 501;
constexpr unsigned kTurns = 6;

struct Handles {
  hipIpcMemHandle_t values, other;
  hipIpcEventHandle_t ours, theirs;
};

template <typename Object>
void Send(int end, const Object& object) {
  if (write(end, &object, sizeof object) != static_cast<ssize_t>(sizeof object)) std::_Exit(98);
}
template <typename Object>
Object Receive(int end) {
  Object object{};
  if (read(end, &object, sizeof object) != static_cast<ssize_t>(sizeof object)) std::_Exit(97);
  return object;
}

// A turn of either process: wait for the other's event, launch, record its own event, report it.
struct Side {
  Lane& lane;
  Value* values;
  const Value* other;
  hipStream_t stream;
  hipEvent_t ours, theirs;

  void Launch(unsigned turn) {
    for (unsigned n = 0; n < 3; ++n)
      LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values, other, 10 * turn + n, differential::kCount, 300));
    CALL(lane, hipEventRecord(ours, stream));
  }
  void WaitForOther() { CALL(lane, hipStreamWaitEvent(stream, theirs, 0)); }
};

// The model of both sides' launches.
void StepTurn(Values& values, const Values& other, unsigned turn) {
  for (unsigned n = 0; n < 3; ++n)
    values.Step(other, 10 * turn + n);
}

int Child(const Run& run, const char* round) {
  Lane lane = run.MakeLane(std::string("child ") + round);
  const auto handles = Receive<Handles>(kToChild);
  void *values = nullptr, *other = nullptr, *again = nullptr;
  CALL(lane, hipIpcOpenMemHandle(&values, handles.values, hipIpcMemLazyEnablePeerAccess));
  CALL(lane, hipIpcOpenMemHandle(&other, handles.other, hipIpcMemLazyEnablePeerAccess));
  CALL(lane, hipIpcOpenMemHandle(&again, handles.other, 99));
  hipEvent_t ours = nullptr, theirs = nullptr;
  CALL(lane, hipIpcOpenEventHandle(&ours, handles.theirs));
  CALL(lane, hipIpcOpenEventHandle(&theirs, handles.ours));
  hipStream_t stream = nullptr;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  Side side{lane, static_cast<Value*>(values), static_cast<const Value*>(other), stream, ours, theirs};
  for (unsigned turn = 1; turn < kTurns; turn += 2) {
    Receive<char>(kToChild);  // their event is recorded
    side.WaitForOther();
    side.Launch(turn);
    Send(kFromChild, 'r');
  }
  // Closed while the last kernels are in flight: that waits for them.
  CALL(lane, hipIpcCloseMemHandle(values));
  CALL(lane, hipIpcCloseMemHandle(other));
  CALL(lane, hipStreamSynchronize(stream));
  CALL(lane, hipEventQuery(ours));
  CALL(lane, hipEventSynchronize(ours));
  CALL(lane, hipEventDestroy(ours));
  CALL(lane, hipEventDestroy(theirs));
  CALL(lane, hipStreamDestroy(stream));
  Send(kFromChild, 'e');
  return 0;
}

// In every second round the child is held for a while.
void TakeTurns(Run& run, unsigned round) {
  Lane& lane = run.main;
  Values values, other;
  values.Make(lane);
  other.Make(lane);
  CALL(lane, hipMemset(other.device, 5, differential::kBytes));
  other.Fill(5);
  Handles handles{};
  hipEvent_t ours = nullptr, theirs = nullptr, plain = nullptr;
  CALL(lane, hipEventCreateWithFlags(&ours, hipEventDisableTiming | hipEventInterprocess));
  CALL(lane, hipEventCreateWithFlags(&theirs, hipEventDisableTiming | hipEventInterprocess));
  CALL(lane, hipEventCreateWithFlags(&plain, hipEventInterprocess));
  CALL(lane, hipIpcGetMemHandle(&handles.values, values.device));
  CALL(lane, hipIpcGetMemHandle(&handles.other, other.device));
  CALL(lane, hipIpcGetMemHandle(&handles.other, nullptr));
  CALL(lane, hipIpcGetEventHandle(&handles.ours, ours));
  CALL(lane, hipIpcGetEventHandle(&handles.theirs, theirs));
  CALL(lane, hipStreamSynchronize(nullptr));
  hipStream_t stream = nullptr;
  CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  Side side{lane, values.device, other.device, stream, ours, theirs};

  int from[2], to[2];
  if (pipe2(from, O_CLOEXEC) != 0 || pipe2(to, O_CLOEXEC) != 0) std::_Exit(95);
  const pid_t child = differential::StartChild(run, std::to_string(round), {{from[1], kFromChild}, {to[0], kToChild}});
  close(from[1]);
  close(to[0]);
  Send(to[1], handles);
  for (unsigned turn = 0; turn < kTurns; turn += 2) {
    if (turn > 0) side.WaitForOther();
    side.Launch(turn);
    StepTurn(values, other, turn);
    StepTurn(values, other, turn + 1);
    // The held child's launch waits at its gate, and this process's stream does not wait for it yet: its work
    // continues.
    const bool hold = round % 2 == 1 && turn == 2;
    if (hold) run.Ask("hold", child);
    Send(to[1], 'r');
    if (hold) {
      run.Ask("held", child);
      CALL(lane, hipStreamSynchronize(stream));
      run.Ask("release", child);
    }
    Receive<char>(from[0]);
  }
  side.WaitForOther();
  CALL(lane, hipStreamSynchronize(stream));
  Receive<char>(from[0]);
  lane.Note(("the child: " + differential::WaitForChild(child)).c_str());
  close(from[0]);
  close(to[1]);
  values.Check(lane, "values of both processes");
  CALL(lane, hipEventDestroy(ours));
  CALL(lane, hipEventDestroy(theirs));
  CALL(lane, hipEventDestroy(plain));
  CALL(lane, hipStreamDestroy(stream));
  e2e::UnlinkEventMemory(handles.ours);
  e2e::UnlinkEventMemory(handles.theirs);
  values.Free(lane);
  other.Free(lane);
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  if (argc > 4) return Child(run, argv[4]);
  for (unsigned round = 0; round < run.rounds; ++round)
    TakeTurns(run, round);
  return run.End();
}
