// Expectations of a program that is a test by itself: Catch2 would bring libraries into the process that is looked at.
// What is not so is told, and counted for the exit status. Thread rule: one thread.
#pragma once

#include <cstdio>

inline int g_failures = 0;

inline void Expect(bool condition, const char* what, int line) {
  if (condition) return;
  std::fprintf(stderr, "line %d: not so: %s\n", line, what);
  ++g_failures;
}
#define EXPECT(condition) Expect(condition, #condition, __LINE__)
