// How many lines of the log clients may cause by what they do (come, go, hint, attach), for each uid and for all: one
// user's flood hides neither another's lines nor anything else. What an administrator does is always logged, and events
// are not touched by this. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/registry/token_bucket.h"

namespace xschedd {

class ClientLines {
 public:
  // Whether a line about a client of this uid is logged. Then `note` says how many before it were not; else it is
  // empty.
  bool Take(std::uint32_t uid, std::uint64_t now_ns, std::string& note);

 private:
  static constexpr double kPerSecond = 5;
  static constexpr double kBurst = 1'000;  // the ranks of a job come together
  static constexpr double kAllPerSecond = 50;
  static constexpr double kAllBurst = 4'000;
  static constexpr std::size_t kUids = 1'024;

  struct Lines {
    TokenBucket bucket{kPerSecond, kBurst};
    std::uint64_t left_out = 0;
    std::uint64_t last_ns = 0;
  };
  void MakeRoom();

  std::map<std::uint32_t, Lines> by_uid_;
  TokenBucket all_{kAllPerSecond, kAllBurst};
};

}  // namespace xschedd
