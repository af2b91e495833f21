// Why a client waited: its held spans of the last seconds, what they add up to, and what an administrator could change.
// Thread rule: pure function over the daemon's records; the daemon's one thread.
#pragma once

#include <string>
#include <vector>

#include "daemon/registry/registry.h"

namespace xschedd {

struct Explanation {
  std::vector<HeldSpan> spans;  // cut to the time asked for; oldest first; one that still runs ends now
  std::uint64_t held_ns = 0;
  std::uint64_t observed_ns = 0;
  std::string summary;
  std::string remedy;
};

// `seconds` 0: as far back as the daemon remembers.
Explanation ExplainClient(const Client& client, const policy::Settings& settings, std::uint32_t seconds,
                          std::uint64_t now_ns);

}  // namespace xschedd
