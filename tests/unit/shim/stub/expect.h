// Expectations for programs that are tests themselves: Catch2 would load libraries into the tested process. Failed ones
// are printed and counted for the exit status. Thread rule: one thread.
#pragma once

#include <cstdio>

inline int g_failures = 0;

inline void Expect(bool condition, const char* what, int line) {
  if (condition) return;
  std::fprintf(stderr, "line %d: not so: %s\n", line, what);
  ++g_failures;
}
#define EXPECT(condition) Expect(condition, #condition, __LINE__)
