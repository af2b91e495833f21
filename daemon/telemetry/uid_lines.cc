#include "daemon/telemetry/uid_lines.h"

#include <algorithm>
#include <utility>

namespace xschedd {

std::optional<std::uint64_t> UidLines::Take(std::uint32_t uid, std::uint64_t now_ns) {
  if (by_uid_.size() >= kUids && !by_uid_.contains(uid)) {
    // Forgets the uid whose last line is oldest; it then starts with a full allowance.
    by_uid_.erase(std::min_element(by_uid_.begin(), by_uid_.end(),
                                   [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; }));
  }
  Lines& lines = by_uid_.try_emplace(uid, Lines{TokenBucket(limits_.per_second, limits_.burst)}).first->second;
  lines.last_ns = now_ns;
  if (!lines.bucket.Take(now_ns) || !all_.Take(now_ns)) {
    ++lines.left_out;
    ++left_out_;
    return std::nullopt;
  }
  return std::exchange(lines.left_out, 0);
}

}  // namespace xschedd
