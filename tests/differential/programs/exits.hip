// Ways for a process to end, with work in flight, held or not, and a thread at the gate or not.
//
// Each way is tried by a process of its own, which works, is held, and then ends in this way; the parent holds and
// releases it. Compared are how it ended and what it wrote, also through stdio's buffer.
//
//   plain     nothing waits at a gate: a held process must end without a release
//   waiting   a thread waits at the gate when another one ends the process: the same
//   launching the exit itself launches work, for example in an exit handler: the process ends once it is released
//   early     the same in a handler from before the first call of HIP: it runs after xschedd's own exit handlers
//
// Left out is everything after main's exit handlers: static objects that are destroyed after the runtime's own, threads
// that still launch. There ROCm 5.2.3 crashes at random, without xschedd, too.
#include <fcntl.h>

#include <csignal>
#include <exception>
#include <thread>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Values;

namespace {

constexpr std::uint64_t kMicros = 2000;
constexpr int kInFlight = 4;

// Pipe ends that the child inherits: numbers that are not in use.
constexpr int kFromChild = 500, kToChild = 501;

void Tell(int end, char what) {
  if (write(end, &what, 1) != 1) std::_Exit(98);
}
char Hear(int end) {
  char what = 0;
  return read(end, &what, 1) == 1 ? what : '\0';
}

// For exit handlers, which take no arguments.
struct World {
  Values values, other;
  hipStream_t stream = nullptr;
  Lane* lane = nullptr;

  void Launch() {
    LAUNCH(*lane, scale_add<<<1, 64, 0, stream>>>(values.device, other.device, 1, differential::kCount, kMicros));
    values.Step(other, 1);
  }
  void LaunchAndCheck() {
    Launch();
    CALL(*lane, hipStreamSynchronize(stream));
    values.Check(*lane, "values in a handler");
  }
};
World g_world;

void Handler() {
  g_world.LaunchAndCheck();
}
void Say(const char* what) {
  std::printf("%s: %s\n", g_world.lane->name().c_str(), what);
}

// Launches, reports to the parent when that has returned, and never ends. While it is held it does not get that far.
void LaunchForEver() {
  scale_add<<<1, 64, 0, g_world.stream>>>(g_world.values.device, g_world.other.device, 1, differential::kCount,
                                          kMicros);
  Tell(kFromChild, 'l');
  for (;;)
    pause();
}
// Called in the thread that does not end the process: waits until the other one waits at the gate, or has passed it.
void WaitUntilToldToEnd() {
  if (Hear(kToChild) != 'e') std::_Exit(97);
}

struct AtThreadEnd {
  ~AtThreadEnd() { Handler(); }
};

struct Way {
  const char* name;
  enum Kind { kPlain, kWaiting, kLaunching, kEarly } kind;
  int (*end)();  // its result is main's
};
const char* const kKinds[] = {"plain", "waiting", "launching", "early"};

const Way kWays[] = {
    {"return", Way::kPlain, [] { return 0; }},
    {"exit 3", Way::kPlain, []() -> int { std::exit(3); }},
    {"_exit 4", Way::kPlain, []() -> int { _exit(4); }},
    {"quick_exit 5", Way::kPlain,
     []() -> int {
       std::at_quick_exit([] { Say("at quick exit"), std::fflush(stdout); });
       std::quick_exit(5);
     }},
    {"abort", Way::kPlain, []() -> int { std::abort(); }},
    {"terminate", Way::kPlain, []() -> int { std::terminate(); }},
    {"SIGTERM", Way::kPlain, [] { return raise(SIGTERM); }},
    {"SIGKILL", Way::kPlain, [] { return raise(SIGKILL); }},
    {"SIGSEGV", Way::kPlain, [] { return raise(SIGSEGV); }},
    {"exit in SIGTERM's handler", Way::kPlain,
     [] {
       std::signal(SIGTERM, [](int) { std::exit(6); });
       return raise(SIGTERM);
     }},
    {"exec", Way::kPlain, [] { return execl("/bin/sh", "sh", "-c", "exit 7", nullptr); }},
    {"exit in another thread", Way::kPlain,
     []() -> int {
       std::thread([] { std::exit(8); }).join();
       return 0;
     }},
    {"main thread ends, another one exits", Way::kPlain,
     []() -> int {
       const pthread_t main_thread = pthread_self();
       std::thread([main_thread] {
         pthread_join(main_thread, nullptr);
         std::exit(9);
       }).detach();
       pthread_exit(nullptr);
     }},
    {"a device reset", Way::kPlain,
     [] {
       CALL(*g_world.lane, hipDeviceReset());
       return 0;
     }},
    {"streams are destroyed", Way::kPlain,
     [] {
       CALL(*g_world.lane, hipStreamDestroy(g_world.stream));
       return 0;
     }},

    {"return", Way::kWaiting,
     [] {
       std::thread(LaunchForEver).detach();
       WaitUntilToldToEnd();
       return 0;
     }},
    {"exit 3", Way::kWaiting,
     []() -> int {
       std::thread(LaunchForEver).detach();
       WaitUntilToldToEnd();
       std::exit(3);
     }},
    {"exit in another thread while main launches", Way::kWaiting,
     []() -> int {
       std::thread([] { WaitUntilToldToEnd(), std::exit(4); }).detach();
       LaunchForEver();
       return 0;
     }},
    {"_exit", Way::kWaiting,
     []() -> int {
       std::thread(LaunchForEver).detach();
       WaitUntilToldToEnd();
       _exit(5);
     }},
    {"SIGTERM", Way::kWaiting,
     [] {
       std::thread(LaunchForEver).detach();
       WaitUntilToldToEnd();
       return raise(SIGTERM);
     }},

    {"an exit handler", Way::kLaunching,
     [] {
       std::atexit(Handler);
       return 0;
     }},
    {"exit in another thread, a handler", Way::kLaunching,
     []() -> int {
       std::atexit(Handler);
       std::thread([] { std::exit(3); }).join();
       return 0;
     }},
    {"a thread's destructor", Way::kLaunching,
     [] {
       std::thread([] {
         thread_local AtThreadEnd at_end;
         (void)at_end;
       }).join();
       return 0;
     }},
    {"main thread ends, another one launches", Way::kLaunching,
     []() -> int {
       const pthread_t main_thread = pthread_self();
       std::thread([main_thread] {
         pthread_join(main_thread, nullptr);
         Handler();
         std::exit(4);
       }).detach();
       pthread_exit(nullptr);
     }},

    {"return", Way::kEarly, [] { return 0; }},
    {"exit 3", Way::kEarly, []() -> int { std::exit(3); }},
};

void EarlyHandler() {
  Say("an early exit handler");
  g_world.LaunchAndCheck();
}

int Child(const Run& run, const Way& way) {
  g_world.lane = new Lane(run.MakeLane(std::string("child ") + kKinds[way.kind] + " " + way.name));
  if (way.kind == Way::kEarly) std::atexit(EarlyHandler);
  g_world.values.Make(*g_world.lane);
  g_world.other.Make(*g_world.lane);
  CALL(*g_world.lane, hipStreamCreate(&g_world.stream));
  for (int i = 0; i < kInFlight; ++i)
    g_world.Launch();
  Tell(kFromChild, 'r');
  if (Hear(kToChild) != 'g') return 96;
  Say("in stdio's buffer");
  return way.end();
}

void Try(Run& run, std::size_t index) {
  const Way& way = kWays[index];
  int from[2], to[2];
  if (pipe2(from, O_CLOEXEC) != 0 || pipe2(to, O_CLOEXEC) != 0) std::_Exit(95);
  const pid_t child = differential::StartChild(run, std::to_string(index), {{from[1], kFromChild}, {to[0], kToChild}});
  close(from[1]);
  close(to[0]);
  const bool is_ready = Hear(from[0]) == 'r';
  if (is_ready) {
    const bool is_held = run.Ask("hold", child);
    Tell(to[1], 'g');
    if (way.kind == Way::kWaiting) {
      if (is_held) run.Ask("held", child);
      if (!is_held) Hear(from[0]);
      Tell(to[1], 'e');
    }
    if (way.kind >= Way::kLaunching) {
      run.Ask("held", child);
      run.Ask("release", child);
    }
  }
  run.main.Note((std::string(kKinds[way.kind]) + " " + way.name + ": " + differential::WaitForChild(child)).c_str());
  if (is_ready && way.kind < Way::kLaunching) run.Ask("release", child);
  close(from[0]);
  close(to[1]);
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  constexpr std::size_t kWayCount = sizeof kWays / sizeof *kWays;
  if (argc > 4) return Child(run, kWays[static_cast<std::size_t>(std::atoi(argv[4]))]);
  for (unsigned round = 0; round < run.rounds; ++round) {
    // Some of them, because each is a process to start: all in six rounds, or six seeds.
    for (std::size_t i = 0; i < kWayCount; ++i)
      if ((i + run.seed + round) % 6 == 0) Try(run, i);
  }
  return run.End();
}
