// Shared by the programs in this folder: each library call goes through CALL, which prints its name and status, and at
// the end main returns the value of Finish. Every run of a program prints the same, so that runs can be compared;
// results are not checked, because the software GPU does not execute kernels.
//
// With COMPAT_ROUNDS=N the work is done N times (20 by default). Finish waits for the end of standard input, so that
// the daemon's record of the process can be read before the process ends. Thread rule: one thread.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace compat {

inline int g_calls = 0;
inline int g_failed = 0;

// `text` is the source of the call; its name ends at the parenthesis. In every library here, status 0 means success.
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
// For calls without which the program cannot continue.
#define NEED(call)                            \
  do {                                        \
    if (!CALL(call)) return compat::Finish(); \
  } while (false)
