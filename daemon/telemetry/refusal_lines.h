// How many lines about refusals each uid gets in the log and the event memory, so that one user's flood hides neither
// another's refusals nor anything else. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "daemon/registry/token_bucket.h"

namespace xschedd {

class RefusalLines {
 public:
  // Whether a refusal of this uid is logged: then how many of its before it were not.
  std::optional<std::uint64_t> Take(std::uint32_t uid, std::uint64_t now_ns);

 private:
  // Of one uid; of all together: somebody may have thousands of uids (subuid).
  static constexpr double kPerSecond = 1;
  static constexpr double kBurst = 10;
  static constexpr double kAllPerSecond = 20;
  static constexpr double kAllBurst = 200;
  static constexpr std::size_t kUids = 1024;

  struct Lines {
    TokenBucket bucket{kPerSecond, kBurst};
    std::uint64_t left_out = 0;
    std::uint64_t last_ns = 0;
  };
  std::map<std::uint32_t, Lines> by_uid_;
  TokenBucket all_{kAllPerSecond, kAllBurst};
};

}  // namespace xschedd
