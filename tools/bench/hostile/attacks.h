// What a client can do to a daemon that it wishes ill, one way each. Every attack goes on until the process is ended,
// as fast as it can, and counts what it did. Thread rule: one thread; the count may be read by another process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd::bench {

struct Target {
  std::string runtime_dir;
  std::string device = "0000:fa:ce.0";  // of the honest clients
};

using Count = std::atomic<std::uint64_t>;

struct Attack {
  std::string_view name;
  void (*run)(const Target& target, Count& count);  // returns when it can go on no longer, to be begun again
};

const std::vector<Attack>& Attacks();

}  // namespace xschedd::bench
