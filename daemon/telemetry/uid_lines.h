// Limits log lines of one kind, per user and in all, so that one user's flood hides nobody else's lines. Subordinate
// uids count as their user (Quotas::OwnerOf). Each of a user's places (registry/principal.h) has at most half of the
// user's lines. The next line of the same principal says how many were left out. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/registry/principal.h"
#include "daemon/registry/token_bucket.h"

namespace xschedd {

// Lines per second, and at once.
struct LineLimits {
  double per_second;
  double burst;
  double all_per_second;
  double all_burst;
};
// For clients: connect, disconnect, hint, attach. The ranks of a job connect together.
inline constexpr LineLimits kClientLines{5, 200, 50, 500};
// For each client that one operation of an administrator, or a reload, changes.
inline constexpr double kDetailLinesPerSecond = 20;
inline constexpr double kDetailLinesBurst = 200;
// For refusals; limits the event memory, too.
inline constexpr LineLimits kRefusalLines{1, 10, 20, 200};

class UidLines {
 public:
  explicit UidLines(const LineLimits& limits) : limits_(limits), all_(limits.all_per_second, limits.all_burst) {}

  // Returns a value if a line about this principal may be logged: how many of its lines were left out before.
  std::optional<std::uint64_t> Take(const Principal& who, std::uint64_t now_ns);
  std::uint64_t LeftOutTotal() const { return left_out_; }

 private:
  static constexpr std::size_t kPrincipals = 1'024;

  struct Lines {
    TokenBucket bucket;
    std::uint64_t left_out = 0;
    std::uint64_t last_ns = 0;
  };

  Lines& LinesOf(const Principal& who, std::uint64_t now_ns);

  const LineLimits limits_;
  std::map<Principal, Lines> lines_;  // of each place; without a place: of each user in all
  TokenBucket all_;
  std::uint64_t left_out_ = 0;
};

}  // namespace xschedd
