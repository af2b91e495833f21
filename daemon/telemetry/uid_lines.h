// How many lines of one kind each user may cause in the log, so that one user's flood hides neither another's lines nor
// anything else; and how many all users together. A user is known by the uid as which its subordinate ones count
// (Quotas::OwnerOf). What is left out is counted and told with the next line. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/registry/token_bucket.h"

namespace xschedd {

// Lines a second, and at once.
struct LineLimits {
  double per_second;
  double burst;
  double all_per_second;
  double all_burst;
};
// What clients do: come, go, hint, attach. The ranks of a job come together.
inline constexpr LineLimits kClientLines{5, 200, 50, 500};
// What one operation of an administrator, or a reload, says of each of the clients that it changes.
inline constexpr double kDetailLinesPerSecond = 20;
inline constexpr double kDetailLinesBurst = 200;
// What is refused to them; also in the event memory.
inline constexpr LineLimits kRefusalLines{1, 10, 20, 200};

class UidLines {
 public:
  explicit UidLines(const LineLimits& limits) : limits_(limits), all_(limits.all_per_second, limits.all_burst) {}

  // Whether a line about this uid is logged: then how many of its before it were not.
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
