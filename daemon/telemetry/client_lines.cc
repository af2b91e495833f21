#include "daemon/telemetry/client_lines.h"

#include <algorithm>

namespace xschedd {

bool ClientLines::Take(std::uint32_t uid, std::uint64_t now_ns, std::string& note) {
  note.clear();
  if (by_uid_.size() >= kUids && !by_uid_.contains(uid)) MakeRoom();
  Lines& lines = by_uid_[uid];
  lines.last_ns = now_ns;
  if (!lines.bucket.Take(now_ns) || !all_.Take(now_ns)) {
    ++lines.left_out;
    return false;
  }
  if (lines.left_out != 0) note = " lines_left_out_of_this_uid=" + std::to_string(lines.left_out);
  lines.left_out = 0;
  return true;
}

void ClientLines::MakeRoom() {
  const auto oldest = std::min_element(
      by_uid_.begin(), by_uid_.end(), [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; });
  by_uid_.erase(oldest);
}

}  // namespace xschedd
