// Limits log lines of one kind per user and in all, so that one user's flood hides nothing of anybody else's.
// Subordinate uids count as their user (Quotas::OwnerOf). The next line of a user says how many were left out. Thread
// rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/registry/token_bucket.h"

namespace xschedd {

// Lines per second, and at once.
struct LineLimits {
  double per_second;
  double burst;
  double all_per_second;
  double all_burst;
};
// For what clients do: come, go, hint, attach. The ranks of a job come together.
inline constexpr LineLimits kClientLines{5, 200, 50, 500};
// For each client that one operation of an administrator, or a reload, changes.
inline constexpr double kDetailLinesPerSecond = 20;
inline constexpr double kDetailLinesBurst = 200;
// For refusals; limits the event memory, too.
inline constexpr LineLimits kRefusalLines{1, 10, 20, 200};

class UidLines {
 public:
  explicit UidLines(const LineLimits& limits) : limits_(limits), all_(limits.all_per_second, limits.all_burst) {}

  // Returns a value if a line about this uid may be logged: how many of its lines were left out before.
  std::optional<std::uint64_t> Take(std::uint32_t uid, std::uint64_t now_ns);
  std::uint64_t LeftOutTotal() const { return left_out_; }

 private:
  static constexpr std::size_t kUids = 1'024;

  struct Lines {
    TokenBucket bucket;
    std::uint64_t left_out = 0;
    std::uint64_t last_ns = 0;
  };

  const LineLimits limits_;
  std::map<std::uint32_t, Lines> by_uid_;
  TokenBucket all_;
  std::uint64_t left_out_ = 0;
};

}  // namespace xschedd
