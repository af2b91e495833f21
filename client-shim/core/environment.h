// The user's settings by environment variables, read once, and the library's lines on standard error.
//   XSCHEDD_PRIORITY     hint, -100..100
//   XSCHEDD_WEIGHT       share among clients of one priority, 1..10000
//   XSCHEDD_LATENCY      strict: others are held whenever it is busy; auto: where that helps it
//   XSCHEDD_DEADLINE_US  from becoming busy to becoming idle, 1..3600000000
//   XSCHEDD_GROUP        clients of one user with the same group are scheduled as one; default: launcher_group.h
//   XSCHEDD_PASSTHROUGH  see common/passthrough.h
//   XSCHEDD_MEMORY       the most device memory on each device, in bytes or as 24G (common/memory_limit.h)
//   XSCHEDD_STREAMS      1: the streams of the process are scheduled against each other; 0 (default): not
//   XSCHEDD_NOTICE       one line for standard error, of what started the process (tools/nri)
//   XSCHEDD_LOG          quiet (nothing), warn (default: what needs action), info (also what happens)
// (XSCHEDD_DISABLE and XSCHEDD_CLIENT_LIB are the stub's, XSCHEDD_RUNTIME_DIR is common/runtime_dir.h.)
// Thread rule: any thread; the environment is read when the library starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xschedd::shim {

inline constexpr std::uint32_t kHighestWeight = 10'000;  // as the protocol says
inline constexpr std::uint32_t kDefaultWeight = 100;
constexpr bool IsWeight(std::uint64_t weight) {
  return weight >= 1 && weight <= kHighestWeight;
}

struct Environment {
  std::optional<int> priority;
  std::optional<std::uint32_t> weight;
  std::string latency;  // "strict" or "auto"; empty: not set
  std::optional<std::uint64_t> deadline_us;
  std::string group;
  std::string passthrough;
  bool schedules_streams = false;
  std::uint64_t memory_bytes = 0;  // 0: no limit

  // Warns of each value that cannot be used, and ignores it.
  static Environment Read();
};

// Empty if it is not set.
std::string EnvironmentVariable(const char* name);

// Each writes one line to standard error, "xschedd: ...", if XSCHEDD_LOG lets it.
void Warn(const std::string& line);
void Info(const std::string& line);

}  // namespace xschedd::shim
