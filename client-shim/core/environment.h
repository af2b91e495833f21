// The user's settings by environment variables, read once, and the library's lines on standard error.
//   XSCHEDD_PRIORITY     hint, -100..100
//   XSCHEDD_WEIGHT       share within a level, 1..10000
//   XSCHEDD_LATENCY      strict: others are held whenever it is busy; auto: where that helps it
//   XSCHEDD_DEADLINE_US  from becoming busy to becoming idle, 1..3600000000
//   XSCHEDD_GROUP        clients of one user with the same group are scheduled as one; not set: launcher_group.h
//   XSCHEDD_PASSTHROUGH  see common/passthrough.h
//   XSCHEDD_MEMORY       the most device memory on each device, in bytes or as 24G (common/memory_limit.h)
//   XSCHEDD_STREAMS      1: the streams of the process are scheduled against each other; 0 (default): not
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
  std::string latency;  // as it is to be sent; empty: not given
  std::optional<std::uint64_t> deadline_us;
  std::string group;
  std::string passthrough;
  bool schedules_streams = false;
  std::uint64_t memory_bytes = 0;  // 0: no limit

  // Says what cannot be used, once, and goes on without it.
  static Environment Read();
};

// One line each, "xschedd: ...", in one write.
void Warn(const std::string& line);
void Info(const std::string& line);

}  // namespace xschedd::shim
