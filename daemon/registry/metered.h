// What the metrics already contain of one client on one device; meter.h fills it. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>

namespace xschedd {

// Numbers that only grow.
struct Usage {
  std::uint64_t gpu_ns = 0;
  std::uint64_t held_ns = 0;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
  std::uint64_t passed = 0;
  std::uint64_t became_busy = 0;
  std::uint64_t became_idle = 0;
  std::uint64_t late = 0;
};

inline constexpr std::uint32_t kNoAccount = 0xffff'ffff;

struct Metered {
  std::uint32_t account = kNoAccount;  // to which all that is new is added; none: found when it is needed
  std::uint64_t begun_ns = 0;          // when the client was attached, or taken over from an earlier daemon
  Usage base;                          // what its ledger showed then
  Usage counted;                       // since then, and in an account
  // The daemon's own counts since then.
  std::uint64_t became_busy = 0;
  std::uint64_t became_idle = 0;
  std::uint64_t late = 0;
};

}  // namespace xschedd
