// Ways in which a client can attack the daemon. Each attack runs as fast as it can until the process is ended, and
// counts its operations. Thread rule: one thread; the count may be read by another process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::bench {

struct Target {
  std::string runtime_dir;
  std::string device = "0000:fa:ce.0";  // the honest clients' device
};

using Count = std::atomic<std::uint64_t>;

struct Attack {
  std::string_view name;
  void (*run)(const Target& target, Count& count);  // returns when it cannot continue; it is then called again
};

const std::vector<Attack>& Attacks();

}  // namespace xschedd::bench
