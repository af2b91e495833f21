// What the programs of this folder have in common: each library call by CALL, which prints its name and status, and at
// the end Finish, whose value main returns. Output is the same in every run of a program, so that runs can be compared;
// results are not looked at, because the software GPU does not execute kernels.
//
// With COMPAT_ROUNDS=N the work is done N times (20 without it). Finish waits for the end of standard input, so that
// what the daemon knows of the process can be read before it goes. Thread rule: one thread.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace compat {

inline int g_calls = 0;
inline int g_failed = 0;

// `text` is the call as it is written; its name ends at the parenthesis. The status of every library here is 0 for
// success.
inline bool Check(const char* text, long status) {
  ++g_calls;
  if (status != 0) ++g_failed;
  std::printf("%.*s: %ld\n", static_cast<int>(std::strcspn(text, "(")), text, status);
  return status == 0;
}

inline int Rounds() {
  const char* text = std::getenv("COMPAT_ROUNDS");
  return text != nullptr ? std::atoi(text) : 20;
}

inline int Finish() {
  std::printf("%d calls, %d failed\n", g_calls, g_failed);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return g_failed == 0 && g_calls > 0 ? 0 : 1;
}

}  // namespace compat

#define CALL(call) compat::Check(#call, static_cast<long>(call))
// For what nothing further can be done without.
#define NEED(call)                            \
  do {                                        \
    if (!CALL(call)) return compat::Finish(); \
  } while (false)
