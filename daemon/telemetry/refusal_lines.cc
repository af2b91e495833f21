#include "daemon/telemetry/refusal_lines.h"

#include <algorithm>
#include <utility>

namespace xschedd {

std::optional<std::uint64_t> RefusalLines::Take(std::uint32_t uid, std::uint64_t now_ns) {
  if (by_uid_.size() >= kUids && !by_uid_.contains(uid)) {
    // Whoever was refused longest ago is forgotten, and may then say as much as a new one.
    by_uid_.erase(std::min_element(by_uid_.begin(), by_uid_.end(),
                                   [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; }));
  }
  Lines& lines = by_uid_[uid];
  lines.last_ns = now_ns;
  if (!lines.bucket.Take(now_ns) || !all_.Take(now_ns)) {
    ++lines.left_out;
    return std::nullopt;
  }
  return std::exchange(lines.left_out, 0);
}

}  // namespace xschedd
