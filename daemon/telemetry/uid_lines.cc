#include "daemon/telemetry/uid_lines.h"

#include <algorithm>
#include <utility>

namespace xschedd {

UidLines::Lines& UidLines::LinesOf(const Principal& who, std::uint64_t now_ns) {
  if (lines_.size() >= kPrincipals && !lines_.contains(who)) {
    // Forgets the one whose last line is oldest; it then starts with a full allowance.
    lines_.erase(std::min_element(lines_.begin(), lines_.end(),
                                  [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; }));
  }
  const double part = who.place.empty() ? 1 : 0.5;
  Lines& lines =
      lines_.try_emplace(who, Lines{TokenBucket(part * limits_.per_second, part * limits_.burst)}).first->second;
  lines.last_ns = now_ns;
  return lines;
}

std::optional<std::uint64_t> UidLines::Take(const Principal& who, std::uint64_t now_ns) {
  // The user's own lines first: making room for them must not forget the place.
  TokenBucket& of_user = LinesOf(who.uid, now_ns).bucket;
  Lines& lines = LinesOf(who, now_ns);
  const bool has_own = who.place.empty() || lines.bucket.Take(now_ns);
  if (!has_own || !of_user.Take(now_ns) || !all_.Take(now_ns)) {
    ++lines.left_out;
    ++left_out_;
    return std::nullopt;
  }
  return std::exchange(lines.left_out, 0);
}

}  // namespace xschedd
