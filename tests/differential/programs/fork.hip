// fork: before the first call of HIP, after it, with work in flight, and while a thread waits at the gate. Children end
// at once, in each way, or start another program, or use HIP if the parent had not.
//
// Not with HIP 6.4: exit in a child hangs in HIP's exit handler, which waits for a thread that fork did not copy
//
// A child's use of HIP after its parent has initialised it is left out: ROCm 5.2.3 fails, hangs or crashes there, with
// and without xschedd. It may read the last error, which belongs to its thread.
#include <spawn.h>

#include <thread>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Values;

extern char** environ;

namespace {

void Work(Lane& lane, Values& values, const Values& other, hipStream_t stream, unsigned launches) {
  for (unsigned step = 0; step < launches; ++step) {
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, other.device, step, differential::kCount, 500));
    values.Step(other, step);
  }
}

void WorkAndCheck(Lane& lane) {
  Values values, other;
  values.Make(lane);
  other.Make(lane);
  hipStream_t stream = nullptr;
  CALL(lane, hipStreamCreate(&stream));
  Work(lane, values, other, stream, 8);
  CALL(lane, hipStreamSynchronize(stream));
  values.Check(lane, "values");
  CALL(lane, hipStreamDestroy(stream));
}

// Forks, runs `body` in the child, and writes how the child ended.
template <typename Body>
void Fork(Lane& lane, const char* what, Body body) {
  std::fflush(stdout);  // a child that exits writes the buffer that it has inherited
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(90);
  }
  lane.Note((std::string(what) + ": " + differential::WaitForChild(pid)).c_str());
}

void Children(Run& run, Lane& lane) {
  Fork(lane, "_exit", [] { _exit(3); });
  Fork(lane, "exit", [] {
    std::printf("forked: in stdio's buffer\n");
    std::exit(4);  // with the runtime's exit handlers
  });
  Fork(lane, "abort", [] { std::abort(); });
  Fork(lane, "exec", [] { execl("/bin/sh", "sh", "-c", "exit 5", nullptr); });
  Fork(lane, "the last error", [&] {
    Lane child = run.MakeLane("forked");
    child.Error("last error", hipGetLastError());
    _exit(6);
  });
  Fork(lane, "a child of a child", [&] {
    const pid_t pid = fork();
    if (pid == 0) _exit(7);
    _exit(differential::WaitForChild(pid) == "exit 7" ? 8 : 9);
  });
  pid_t pid = -1;
  const char* arguments[] = {"sh", "-c", "exit 10", nullptr};
  if (posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) std::_Exit(92);
  lane.Note(("posix_spawn: " + differential::WaitForChild(pid)).c_str());
  lane.Number("system", WEXITSTATUS(std::system("exit 11")));
  // A program of its own uses HIP beside us.
  lane.Note(("a process of its own: " + differential::WaitForChild(differential::StartChild(run, "work"))).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  Lane& lane = run.main;
  if (argc > 4) {
    Lane child = run.MakeLane("a process of its own");
    WorkAndCheck(child);
    return 0;
  }
  Fork(lane, "a child from before the first call", [&] {
    Lane child = run.MakeLane("early child");
    WorkAndCheck(child);
    std::exit(12);
  });
  WorkAndCheck(lane);
  Values values, other;
  values.Make(lane);
  other.Make(lane);
  hipStream_t stream = nullptr;
  CALL(lane, hipStreamCreate(&stream));
  for (unsigned round = 0; round < run.rounds; ++round) {
    Work(lane, values, other, stream, 8);
    Children(run, lane);

    // A thread waits at the gate, or has passed it, while this one forks.
    const bool is_held = run.Ask("hold");
    Lane launcher = run.MakeLane("launcher " + std::to_string(round));
    std::thread thread([&] { Work(launcher, values, other, stream, 2); });
    if (is_held) run.Ask("held");
    Children(run, lane);
    run.Ask("release");
    thread.join();
    CALL(lane, hipStreamSynchronize(stream));
    values.Check(lane, "values after the children");
  }
  return run.End();
}
