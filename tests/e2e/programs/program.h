// Shared by all end-to-end programs: the two arguments, the check of HIP's return codes, the last line.
//
//   PROGRAM LAUNCHES MICROS     launches `scale_add` LAUNCHES times, each taking MICROS of device time
//
// If every value is as the host computed it, the last line is "right: L launches, S submissions" and the exit code 0;
// else 1 with a line on stderr. The program lives until the end of standard input, so that the daemon still lists it.
// `submissions` is how many calls that submit work the program made, which the daemon should count. Thread rule: main
// thread, except for the checks.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels.h"

#define E2E_CHECK(call)                                                                         \
  do {                                                                                          \
    const int e2e_status = static_cast<int>(call);                                              \
    if (e2e_status != 0) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s gave error %d\n", __FILE__, __LINE__, #call, e2e_status); \
      std::_Exit(1);                                                                            \
    }                                                                                           \
  } while (0)

namespace e2e {

inline constexpr std::uint32_t kCount = 256;  // values in a buffer
inline constexpr std::size_t kBytes = kCount * sizeof(Value);

struct Arguments {
  unsigned launches = 100;
  std::uint64_t micros = 1000;
};

inline Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  if (argc > 1) arguments.launches = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  if (argc > 2) arguments.micros = std::strtoull(argv[2], nullptr, 10);
  return arguments;
}

inline std::vector<Value> InitialX() {
  std::vector<Value> x(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i)
    x[i] = 3 * i + 1;
  return x;
}

// The program's verdict, its exit status; returns at the end of standard input.
inline int Verdict(const std::vector<Value>& got, const std::vector<Value>& wanted, unsigned launches,
                   unsigned submissions) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i]) {
      std::fprintf(stderr, "wrong: value %zu is %u, should be %u\n", i, got[i], wanted[i]);
      return 1;
    }
  }
  std::printf("right: %u launches, %u submissions\n", launches, submissions);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

// Ends the program with its verdict.
[[noreturn]] inline void Finish(const std::vector<Value>& got, const std::vector<Value>& wanted, unsigned launches,
                                unsigned submissions) {
  std::exit(Verdict(got, wanted, launches, submissions));
}

}  // namespace e2e
