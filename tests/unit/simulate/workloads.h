// Workloads for tests, written as a reader of docs/contributing/simulator.md would.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr std::uint64_t kS = 1'000'000'000;

inline Workload Read(const std::string& lines) {
  std::istringstream input(lines);
  Result<Workload> workload = ReadWorkload(input, "test");
  INFO((workload ? std::string() : workload.error().Line()));
  REQUIRE(workload);
  return *workload;
}

}  // namespace xschedd::simulate
