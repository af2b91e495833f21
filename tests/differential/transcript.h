// How a differential program writes what HIP did: the contract between the programs and differential.py.
//
// A program is run once without xschedd and then with it in several ways (differential.py), and must write the same
// transcript each time: what every HIP call returned, what hipPeekAtLastError and hipGetLastError said after it, the
// data, the order of events. Nothing in a transcript may depend on time, on addresses, or on which thread came first.
//
//   PROGRAM SEED DEVICES ROUNDS
//
//     SEED     decides everything that the program chooses at random (Lane::Random)
//     DEVICES  how many devices it may use (1 or 2); it has that many
//     ROUNDS   how often it goes through its body. A round takes some 20 to 100 ms on a device of its own, in
//              kernels of 100 us to 2 ms, so that there is work to hold
//
// Lanes. A line belongs to a lane, and is written at once. Order is compared within a lane, never between lanes: give
// each thread its lane, and each stream's callbacks theirs. A lane's name is unique in the program; a
// forked child uses other names.
//
// EITHER names the results that may differ, with the reason. If the runtime's answer depends on time in any other way,
// leave it out of the transcript (call it without a lane), with a comment that says why.
//
// A program that cannot run in a mode has a line `// Not in mode NAME: ...` with the reason in its source; one that
// some versions of HIP cannot run, `// Not with HIP 5.7, 6.4: ...`.
//
// The driver also compares the exit status, and what HIP or the software GPU write to standard error. A program ends
// with `return run.End()`, or without it as its subject demands (exit while work is held, a crash). A check that fails
// is written as FAILS, and fails the run, also the one without xschedd.
//
// Thread rule: a lane may be used by one thread at a time. Run::Random and Run::Ask: main thread only.
#pragma once

#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "tests/differential/kernels.h"

// The result of the call, which is also the expression's value: if (CALL(lane, hipMalloc(&p, n)) != hipSuccess) ...
#define CALL(lane, ...) ((lane).Returned(#__VA_ARGS__, (__VA_ARGS__)))
// A launch by <<<>>>; the value is what it left as the last error, which it takes away.
#define LAUNCH(lane, ...) ([&] { __VA_ARGS__; }(), (lane).Launched(#__VA_ARGS__))
// A call that may return either of several results, and why: EITHER(lane, "the kernel may be done", hipStreamQuery(s),
// hipSuccess, hipErrorNotReady). Any other result is written as it is.
#define EITHER(lane, reason, call, ...) ((lane).ReturnedEither(#call, (call), reason, {__VA_ARGS__}))
// A condition that must hold in every run, such as a comparison with a model of the program on the host.
#define CHECK(lane, ...) ((lane).Checked(#__VA_ARGS__, static_cast<bool>(__VA_ARGS__)))

namespace differential {

// SplitMix64: the same numbers everywhere.
class Generator {
 public:
  explicit Generator(std::uint64_t state) : state_(state) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

inline std::uint64_t Hash(const void* data, std::size_t bytes, std::uint64_t hash = 0xCBF29CE484222325u) {  // FNV-1a
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3u;
  return hash;
}

class Lane {
 public:
  Lane(std::string name, std::uint64_t seed)
      : name_(std::move(name)), numbers_(Hash(name_.data(), name_.size(), seed)), looks_(~numbers_.Next()) {}

  const std::string& name() const { return name_; }

  // 0 to below - 1, by seed and lane.
  unsigned Random(unsigned below) { return static_cast<unsigned>(numbers_.Next() % below); }

  hipError_t Returned(const char* call, hipError_t result) {
    Write("%s -> %s%s", call, hipGetErrorName(result), LastError().c_str());
    return result;
  }

  hipError_t Launched(const char* launch) {
    const hipError_t peeked = hipPeekAtLastError(), got = hipGetLastError(), after = hipPeekAtLastError();
    Write("%s -> peek %s, get %s, then %s", launch, hipGetErrorName(peeked), hipGetErrorName(got),
          hipGetErrorName(after));
    return got;
  }

  hipError_t ReturnedEither(const char* call, hipError_t result, const char* reason,
                            std::initializer_list<hipError_t> allowed) {
    const hipError_t peeked = hipPeekAtLastError();
    std::string list;
    bool is_allowed = false;
    for (const hipError_t one : allowed) {
      list += (list.empty() ? "" : " or ") + std::string(hipGetErrorName(one));
      is_allowed = is_allowed || one == result;
    }
    Write("%s -> %s (%s); peek %s", call, is_allowed ? list.c_str() : hipGetErrorName(result), reason,
          peeked == result ? "the same" : hipGetErrorName(peeked));
    return result;
  }

  bool Checked(const char* what, bool holds) {
    Write("%s %s", what, holds ? "holds" : "FAILS");
    return holds;
  }

  // Numbers that do not depend on time or place.
  template <typename Type>
  void Number(const char* what, Type value) {
    static_assert(std::is_arithmetic_v<Type> || std::is_enum_v<Type>, "an address is not the same in every run");
    if constexpr (std::is_floating_point_v<Type>) {
      Write("%s = %.9g", what, static_cast<double>(value));
    } else {
      Write("%s = %lld", what, static_cast<long long>(value));
    }
  }
  void Error(const char* what, hipError_t error) { Write("%s = %s", what, hipGetErrorName(error)); }
  void Data(const char* what, const void* data, std::size_t bytes) {
    Write("%s: %zu bytes, hash %016llx", what, bytes, static_cast<unsigned long long>(Hash(data, bytes)));
  }
  void Data(const char* what, const Order& order) {
    std::string list;
    for (std::uint32_t i = 0; i < order.count && i < Order::kMaxTags; ++i)
      list += " " + std::to_string(order.tags[i]);
    Write("%s: %u:%s", what, order.count, list.c_str());
  }
  void Null(const char* what, const void* pointer) { Write("%s is %snull", what, pointer == nullptr ? "" : "not "); }
  // Of a time in ms that an event gave: below, at or above 0, or not a number.
  void Sign(const char* what, float ms) {
    Write("%s is %s", what, std::isnan(ms) ? "not a number" : ms < 0 ? "below 0" : ms > 0 ? "above 0" : "0");
  }
  void Note(const char* text) { Write("%s", text); }

 private:
  // Always peeks. Sometimes also gets, which clears the error: by seed and lane, so that both errors that stay and
  // cleared ones are tested.
  std::string LastError() {
    const hipError_t peeked = hipPeekAtLastError();
    std::string text = std::string(", peek ") + hipGetErrorName(peeked);
    if (looks_.Next() % 4 == 0) {
      const hipError_t got = hipGetLastError(), after = hipPeekAtLastError();
      text += std::string(", get ") + hipGetErrorName(got) + ", then " + hipGetErrorName(after);
    }
    return text;
  }

  // One write a line: lines of several threads and processes do not mix, and none is lost when the program dies.
  template <typename... Arguments>
  void Write(const char* format, Arguments... arguments) {
    char text[4096];
    int used = std::snprintf(text, sizeof text - 1, "%s: ", name_.c_str());
    used += std::snprintf(text + used, sizeof text - 1 - static_cast<std::size_t>(used), format, arguments...);
    const auto last =
        static_cast<std::size_t>(used) < sizeof text - 2 ? static_cast<std::size_t>(used) : sizeof text - 2;
    for (std::size_t i = 0; i < last; ++i)
      if (text[i] == '\n') text[i] = ' ';
    text[last] = '\n';
    if (write(STDOUT_FILENO, text, last + 1) < 0) std::_Exit(99);
  }

  std::string name_;
  Generator numbers_, looks_;
};

// The program's arguments, its main lane, and its communication with the driver.
class Run {
 public:
  Run(int argc, char** argv)
      : seed(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1),
        devices(argc > 2 ? std::atoi(argv[2]) : 1),
        rounds(argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1),
        main("main", seed) {}

  Lane MakeLane(const std::string& name) const { return Lane(name, seed); }

  // Asks the driver to change the state of a process, this one or a child, and returns when that is done:
  //   "hold"      under a scheduler: the daemon has shut the process's gates. The next launch waits until a release
  //   "held"      under a scheduler: a thread of the process waits at a gate (so another one has to ask)
  //   "release"   the hold has ended, and the hostile scheduler continues
  // Without a daemon it returns at once: programs ask the same in every run. False: nothing was done.
  bool Ask(const char* what, pid_t process = getpid()) {
    const std::string line = std::string("?") + what + " " + std::to_string(process) + "\n";
    char answer = 0;
    bool is_done = false;
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
    // End of input: run by hand, without a driver.
    while (read(STDIN_FILENO, &answer, 1) == 1 && answer != '\n')
      is_done = answer == 'y';
    return is_done;
  }

  // The last line: without it the program did not reach its end.
  int End() {
    main.Note("end");
    return 0;
  }

  const std::uint64_t seed;
  const int devices;
  const unsigned rounds;
  Lane main;
};

}  // namespace differential
